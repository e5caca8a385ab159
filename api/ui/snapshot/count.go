package snapshot

import (
	"context"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	// wanted is how long a count goes on that nobody looks at.
	wanted = 10 * time.Second
	// rest is how many times as long as a part of a count takes the pause after it is. One count
	// goes on at a time, so all take a quarter of a connection at most.
	rest = 3
)

// Counts are dry runs of operations, which go on in the background until all jobs are counted.
// All who look at one share it. It may be used concurrently.
type Counts struct {
	mu sync.Mutex
	// counts has each under its key, and under its key and moment as well.
	counts map[string]*count
	// turn has an element while one goes on. Nobody waits for the beginning of another.
	turn chan struct{}
}

// NewCounts returns none.
func NewCounts() *Counts {
	return &Counts{counts: map[string]*count{}, turn: make(chan struct{}, 1)}
}

// Ask makes a dry run for the jobs of a moment, now if that is zero; or goes on with one that has
// returned a cursor.
type Ask func(ctx context.Context, frozen time.Time, cursor string) (v1.OperationAnswer, error)

// Counted is what a dry run has found so far.
type Counted struct {
	v1.OperationAnswer
	// Stopped is why it could not go on when it was last tried; nil if it could.
	Stopped error
}

// count is one of them, with what is known so far.
type count struct {
	answer Counted
	err    error
	// first is closed once there is an answer or an error.
	first chan struct{}
	going bool
	used  time.Time
}

// Of returns what the dry run with the key has found so far, and waits for the first of it. The
// key says who may see it. A moment names a dry run that has returned it, which may have ended. Without
// one, it is a new dry run, unless one goes on. One that has stopped is tried again. If the context is
// done first, nothing is known but that there may be more. The error says why it could not begin.
func (c *Counts) Of(ctx context.Context, key string, frozen time.Time, ask Ask) (Counted, error) {
	c.mu.Lock()
	now := time.Now()
	named := key
	if !frozen.IsZero() {
		named = at(key, frozen)
	}
	found := c.counts[named]
	if found == nil || frozen.IsZero() && !found.going {
		c.forget(now)
		if len(c.counts) >= most { // All of them go on.
			c.mu.Unlock()
			return Counted{OperationAnswer: v1.OperationAnswer{More: true}}, nil
		}
		found = &count{first: make(chan struct{})}
		c.counts[named] = found
	}
	found.used = now
	if !found.going && (found.answer.FrozenAt.IsZero() || found.answer.NextCursor != "") {
		found.going = true
		go c.goOn(context.WithoutCancel(ctx), found, named, key, frozen, ask)
	}
	c.mu.Unlock()

	select {
	case <-found.first:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found.answer.FrozenAt.IsZero() && found.err == nil {
		return Counted{OperationAnswer: v1.OperationAnswer{More: true}}, nil
	}
	return found.answer, found.err
}

// goOn counts until all is counted, nobody looks any more, or it fails.
func (c *Counts) goOn(ctx context.Context, one *count, named, key string, frozen time.Time, ask Ask) {
	for more := true; more; {
		c.mu.Lock()
		cursor := one.answer.NextCursor
		if cursor != "" {
			frozen = one.answer.FrozenAt
		}
		c.mu.Unlock()
		if cursor != "" {
			c.turn <- struct{}{}
		}
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, longest)
		answer, err := safely(within, func(ctx context.Context) (v1.OperationAnswer, error) { return ask(ctx, frozen, cursor) })
		cancel()
		more = c.note(one, named, key, answer, err)
		if cursor == "" {
			continue
		}
		if more {
			time.Sleep(rest * time.Since(began))
		}
		<-c.turn
	}
}

// note adds what was found, and reports whether the count goes on.
func (c *Counts) note(one *count, named, key string, answer v1.OperationAnswer, err error) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := one.answer.FrozenAt.IsZero()
	switch {
	case err != nil && first:
		one.err = err
		delete(c.counts, named)
	case err == nil && first:
		one.answer.OperationAnswer = answer
		c.counts[at(key, answer.FrozenAt)] = one
	case err != nil:
		one.answer.Stopped = err
	default:
		one.answer.Stopped = nil
		one.answer.Count += answer.Count
		one.answer.More, one.answer.NextCursor = answer.More, answer.NextCursor
	}
	one.going = err == nil && one.answer.NextCursor != "" && time.Since(one.used) < wanted
	if first {
		close(one.first)
	}
	return one.going
}

// forget makes room. What goes on stays.
func (c *Counts) forget(now time.Time) {
	oldest := ""
	for key, one := range c.counts {
		switch {
		case one.going:
		case now.Sub(one.used) > idle:
			delete(c.counts, key)
		case oldest == "" || one.used.Before(c.counts[oldest].used):
			oldest = key
		}
	}
	if len(c.counts) >= most {
		delete(c.counts, oldest)
	}
}

func at(key string, frozen time.Time) string {
	return key + "\n" + frozen.UTC().Format(time.RFC3339Nano)
}
