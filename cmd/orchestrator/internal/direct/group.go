package direct

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// groupMost bounds one insert.
	groupMost = 500
	// storeWithin bounds one insert's time.
	storeWithin = 10 * time.Second
)

// group stores submissions that come at the same time in one insert: a commit
// for each would make a batch crawl.
type group struct {
	store func(context.Context, []job.Submission) []job.Submitted

	mu      sync.Mutex
	pending []pending
	busy    bool
}

type pending struct {
	submission job.Submission
	done       chan<- job.Submitted
}

// submit returns when the job is stored, or known not to be. When the context
// ends first it may have been stored or not.
func (g *group) submit(ctx context.Context, s job.Submission) job.Submitted {
	done := make(chan job.Submitted, 1)
	g.mu.Lock()
	g.pending = append(g.pending, pending{submission: s, done: done})
	first := !g.busy
	g.busy = true
	g.mu.Unlock()
	if first {
		go g.work()
	}
	select {
	case submitted := <-done:
		return submitted
	case <-ctx.Done():
		return job.Submitted{Err: fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, ctx.Err())}
	}
}

// work stores what is pending until nothing is.
func (g *group) work() {
	for {
		g.mu.Lock()
		batch := g.pending[:min(len(g.pending), groupMost)]
		g.pending = g.pending[len(batch):]
		g.busy = len(batch) > 0
		g.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		submissions := make([]job.Submission, len(batch))
		for i, p := range batch {
			submissions[i] = p.submission
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
		results := g.store(ctx, submissions)
		cancel()
		for i, p := range batch {
			p.done <- results[i]
		}
	}
}
