package direct

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// hintInterval is the least time between two hints of a kind: a commit that
// notifies takes a lock that all such commits of the server share.
const hintInterval = 100 * time.Millisecond

// hintWithin bounds the sending of one.
const hintWithin = time.Second

// hints tell workers that there is something to do. Without them they find it
// by polling.
type hints struct {
	send func(context.Context, job.Hint) error

	mu      sync.Mutex
	last    map[job.Hint]time.Time
	waiting []job.Hint
}

// tell sends the hint, or keeps it for flush when one of the kind was sent a
// moment ago.
func (h *hints) tell(ctx context.Context, hint job.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.last[hint]) < hintInterval {
		for _, kept := range h.waiting {
			if kept == hint {
				return
			}
		}
		h.waiting = append(h.waiting, hint)
		return
	}
	h.pass(ctx, hint)
}

func (h *hints) flush(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hint := range h.waiting {
		h.pass(ctx, hint)
	}
	h.waiting = nil
}

func (h *hints) pass(ctx context.Context, hint job.Hint) {
	// What the hint is about has been stored, even if the client has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hintWithin)
	defer cancel()
	_ = h.send(ctx, hint)
	h.last[hint] = time.Now()
}
