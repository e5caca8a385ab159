package runtime

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// AfterCrash says what becomes of the leases of attempts whose process has died.
type AfterCrash string

const (
	// Expire lets them run out, as those of a worker that has died do.
	Expire AfterCrash = "expire"
	// GiveBack ends them as soon as the process is known to be gone.
	GiveBack AfterCrash = "give_back"
)

// lapsing keeps the ends of attempts whose leases are left to run out, and has
// them written shortly before they have. So what happened is told by the worker
// that knows of it; had it died meanwhile, a reaper would find the leases
// expired.
type lapsing struct {
	settle func(...write)
	// early is how long before the end of a lease its attempt is settled.
	early time.Duration

	mu      sync.Mutex
	waiting map[job.LeaseID]lapse
	closed  bool
}

type lapse struct {
	end   write
	timer *time.Timer
}

// newLapsing returns one that keeps nothing unless leases are to expire.
func newLapsing(cfg Config, settle func(...write)) *lapsing {
	return &lapsing{
		settle: settle, early: cfg.Lease / killBefore,
		waiting: make(map[job.LeaseID]lapse), closed: cfg.AfterCrash != Expire,
	}
}

// add takes the end of an attempt. Its lease is not renewed any more.
func (l *lapsing) add(a *attempt, end write) {
	wait := time.Until(a.heldUntil()) - l.early
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.settle(end)
		return
	}
	id := a.claimed.ID
	l.waiting[id] = lapse{end: end, timer: time.AfterFunc(wait, func() { l.due(id) })}
}

func (l *lapsing) due(id job.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over, ok := l.waiting[id]; ok {
		delete(l.waiting, id)
		l.settle(over.end)
	}
}

// close has everything written at once, also what comes later.
func (l *lapsing) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for id, over := range l.waiting {
		over.timer.Stop()
		delete(l.waiting, id)
		l.settle(over.end)
	}
}

// holds reports whether the lease of the attempt is left to run out.
func (l *lapsing) holds(a *attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.waiting[a.claimed.ID]
	return ok
}

func (l *lapsing) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
