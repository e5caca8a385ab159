package runtime

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// inFlight are the attempts whose leases this worker holds: from the claim until the
// settlement is known to be committed.
type inFlight struct {
	mu       sync.Mutex
	attempts map[job.LeaseID]*attempt
	running  int
	freed    loop.Signal // raised when there may be room again: a handler is done, or an attempt settled
	emptied  loop.Signal // raised when nothing is held any more
	idle     loop.Signal // raised when no handler is running any more
}

func newInFlight() *inFlight {
	return &inFlight{
		attempts: make(map[job.LeaseID]*attempt), freed: loop.NewSignal(), emptied: loop.NewSignal(), idle: loop.NewSignal(),
	}
}

func (f *inFlight) add(a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts[a.claimed.ID] = a
}

// starting counts an attempt whose handler is about to be started.
func (f *inFlight) starting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running++
}

// notStarted takes back starting.
func (f *inFlight) notStarted() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stoppedLocked()
}

// finished counts an attempt whose handler is done, or was never started, but that
// is still to be settled.
func (f *inFlight) finished(started bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freed.Raise()
	if started {
		f.stoppedLocked()
	}
}

func (f *inFlight) stoppedLocked() {
	f.running--
	if f.running == 0 {
		f.idle.Raise()
	}
}

// remove forgets an attempt that is settled, or given up.
func (f *inFlight) remove(id job.LeaseID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.attempts, id)
	f.freed.Raise()
	if len(f.attempts) == 0 {
		f.emptied.Raise()
	}
}

// counts returns how many handlers run, and how many leases are held in all.
func (f *inFlight) counts() (running, held int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, len(f.attempts)
}

func (f *inFlight) all() []*attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]*attempt, 0, len(f.attempts)), maps.Values(f.attempts))
}

func (f *inFlight) leases() []job.LeaseID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]job.LeaseID, 0, len(f.attempts)), maps.Keys(f.attempts))
}
