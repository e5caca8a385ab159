package runtime

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// CrashPolicy says what becomes of the leases of attempts whose process has died.
type CrashPolicy string

const (
	// Expire has them end when they would have run out had the worker died.
	Expire CrashPolicy = "expire"
	// Release ends them as soon as the process is known to be gone.
	Release CrashPolicy = "release"
)

// lapsing keeps the ends of attempts whose process has died for as long as their
// leases had to run, and has them written then. The leases are renewed all the
// while, and until the ends are written: a database that does not answer at that
// moment must not make a reaper charge all who were in the process. Only when
// this worker is gone as well does a reaper settle them.
type lapsing struct {
	settle func(*end)

	mu      sync.Mutex
	waiting map[job.LeaseID]lapse
	closed  bool
}

type lapse struct {
	end   *end
	timer *time.Timer
}

// newLapsing returns one that keeps nothing unless leases are to expire.
func newLapsing(cfg Config, settle func(*end)) *lapsing {
	return &lapsing{settle: settle, waiting: make(map[job.LeaseID]lapse), closed: cfg.CrashPolicy != Expire}
}

// add takes the end of an attempt.
func (l *lapsing) add(a *attempt, e *end) {
	wait := time.Until(a.heldUntil())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.settle(e)
		return
	}
	e.spans.Lapses()
	id := a.claimed.ID
	l.waiting[id] = lapse{end: e, timer: time.AfterFunc(wait, func() { l.due(id) })}
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

func (l *lapsing) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
