// Package snapshot shares figures among all who look at them. However many look, they are read
// once at a time, and seldom if reading is slow.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	// least is the shortest time from one reading to the next.
	least = 2 * time.Second
	// share is how many times as long as a reading takes the pause after it is.
	share = 10
	// patience is how long a reading takes until the database is said not to answer: at least, for
	// readings that take longer than a third of it.
	patience      = 2 * time.Second
	patienceShare = 3
	// slow is how long a reading takes that nobody waits for, while the last figures are younger
	// than current.
	slow    = 100 * time.Millisecond
	current = time.Minute
	// costlyShare is share for figures whose cost grows with the number of jobs, unless the pause
	// would be longer than costlyPause.
	costlyShare = 100
	costlyPause = 30 * time.Second
	// longest bounds a reading.
	longest = 30 * time.Second
	// idle is how long figures are kept that nobody looks at.
	idle = 5 * time.Minute
	// most bounds the number of keys.
	most = 256
)

// Cache has the last figures of each key. The zero Cache is empty. It may be used concurrently.
type Cache struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// Figures are what was read last. Nobody may change the value.
type Figures[T any] struct {
	Value T
	// At is when the value was read; zero if there is none yet: see Get.
	At time.Time
	// Failing is since when it can no longer be read; zero if it can.
	Failing time.Time
}

// entry is what is known of one key.
type entry struct {
	value   any // nil for nothing yet
	at      time.Time
	err     error // of the last reading
	failing time.Time
	// took is how long the last reading took that succeeded.
	took time.Duration
	// next is the time before which nothing is read again.
	next    time.Time
	used    time.Time
	reading *reading // nil while nobody reads
}

type reading struct {
	began time.Time
	done  chan struct{}
}

// Cost says how the cost of figures grows.
type Cost bool

const (
	// Steady figures cost about the same, however many jobs there are.
	Steady Cost = false
	// Growing figures cost more, the more jobs there are. They are read less often if that
	// takes long.
	Growing Cost = true
)

// pause is how long after the beginning of a reading the next one may begin.
func (c Cost) pause(took time.Duration) time.Duration {
	pause := max(least, share*took)
	if c == Growing {
		pause = max(pause, min(costlyShare*took, costlyPause))
	}
	return pause
}

// Pending reports whether there is no value yet, because the first reading goes on.
func (f Figures[T]) Pending() bool { return f.At.IsZero() }

// Get returns the figures of a key, which says who may see them. It reads them anew with load
// if they are old, and waits for that until the reading has taken the time brief; but not if the
// last reading took long, and is less than a minute old. Then it returns the last figures. If there
// are none yet, it waits for Steady ones until the context ends, and returns Growing ones that are
// Pending.
//
// The error is that of load, or a problem of status 503, if there are no figures. A refusal, which
// is a *v1.Problem below 500, is returned instead of the last figures.
func Get[T any](
	ctx context.Context, c *Cache, key string, cost Cost, brief time.Duration, load func(context.Context) (T, error),
) (Figures[T], error) {
	found, err := c.get(ctx, key, cost, brief, func(ctx context.Context) (any, error) { return load(ctx) })
	if err != nil {
		return Figures[T]{}, err
	}
	value, _ := found.value.(T) // Pending figures have none.
	return Figures[T]{Value: value, At: found.at, Failing: found.failing}, nil
}

func (c *Cache) get(ctx context.Context, key string, cost Cost, brief time.Duration, load func(context.Context) (any, error)) (entry, error) {
	c.mu.Lock()
	now := time.Now()
	e := c.entry(key, now)
	if e.reading == nil && !now.Before(e.next) {
		e.reading = &reading{began: now, done: make(chan struct{})}
		go c.read(context.WithoutCancel(ctx), e, e.reading, cost, load)
	}
	awaited, until := e.reading, e.waitUntil(now, cost, brief)
	c.mu.Unlock()

	if awaited != nil && now.Before(until) {
		waiting, cancel := context.WithDeadline(ctx, until)
		select {
		case <-awaited.done:
		case <-waiting.Done():
		}
		cancel()
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	found := *e
	if reading := found.reading; reading != nil && found.value != nil && found.failing.IsZero() && time.Since(reading.began) >= e.patience() {
		found.failing = reading.began
	}
	switch {
	case found.value != nil:
		return found, nil
	case found.err != nil:
		return entry{}, found.err
	case cost == Growing && found.reading != nil:
		return found, nil
	default:
		return entry{}, v1.Unavailable("the database does not answer")
	}
}

// waitUntil is until when somebody who looks waits for the reading that goes on, if one does.
func (e *entry) waitUntil(now time.Time, cost Cost, brief time.Duration) time.Time {
	switch {
	case e.reading == nil, e.value != nil && e.failing.IsZero() && e.took > slow && now.Sub(e.at) < current:
		return now
	case e.value == nil && cost == Steady:
		return e.reading.began.Add(longest)
	default:
		return e.reading.began.Add(brief)
	}
}

// patience is how long a reading takes until it is said that the database does not answer.
func (e *entry) patience() time.Duration { return max(patience, patienceShare*e.took) }

// entry returns the entry of a key, and forgets those that nobody uses.
func (c *Cache) entry(key string, now time.Time) *entry {
	if c.entries == nil {
		c.entries = map[string]*entry{}
	}
	e := c.entries[key]
	if e == nil {
		c.forget(now)
		e = &entry{}
		c.entries[key] = e
	}
	e.used = now
	return e
}

func (c *Cache) forget(now time.Time) {
	var oldest string
	for key, e := range c.entries {
		if now.Sub(e.used) > idle {
			delete(c.entries, key)
		} else if oldest == "" || e.used.Before(c.entries[oldest].used) {
			oldest = key
		}
	}
	if len(c.entries) >= most {
		delete(c.entries, oldest)
	}
}

func (c *Cache) read(ctx context.Context, e *entry, this *reading, cost Cost, load func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	value, err := safely(ctx, load)

	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(this.done)
	now := time.Now()
	e.reading, e.err = nil, err
	var refused *v1.Problem
	switch {
	case err == nil:
		e.value, e.at, e.failing, e.took = value, now, time.Time{}, now.Sub(this.began)
		e.next = this.began.Add(cost.pause(e.took))
	case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError:
		e.value, e.at, e.failing = nil, time.Time{}, time.Time{}
		e.next = now // The next caller may be allowed more.
	default:
		if e.failing.IsZero() {
			e.failing = this.began
		}
		e.next = now.Add(least)
	}
}

// safely turns a panic into an error, because nobody else would catch it.
func safely[T any](ctx context.Context, load func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return load(ctx)
}
