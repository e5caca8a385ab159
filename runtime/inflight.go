package runtime

import (
	"slices"
	"sync"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// inFlight are the attempts whose leases this worker holds: from the claim until the
// settlement is known to be committed.
type inFlight struct {
	mu       sync.Mutex
	attempts []*attempt // in any order; each knows its place
	running  int
	freed    loop.Signal // raised when there may be room again: a handler is done, or an attempt settled
	emptied  loop.Signal // raised when nothing is held any more
	idle     loop.Signal // raised when no handler is running any more
}

func newInFlight() *inFlight {
	return &inFlight{freed: loop.NewSignal(), emptied: loop.NewSignal(), idle: loop.NewSignal()}
}

func (f *inFlight) add(a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts = append(f.attempts, a)
	a.place = len(f.attempts)
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

// remove forgets the attempts of endings that are settled, or given up. One that was taken over was
// never in flight.
func (f *inFlight) remove(ends ...*ending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range ends {
		if e.attempt != nil && e.attempt.place > 0 {
			f.removeLocked(e.attempt)
		}
	}
	f.freed.Raise()
	if len(f.attempts) == 0 {
		f.emptied.Raise()
	}
}

// removeLocked puts the last attempt in the place of this one.
func (f *inFlight) removeLocked(a *attempt) {
	end := len(f.attempts) - 1
	last := f.attempts[end]
	f.attempts[a.place-1], last.place = last, a.place
	f.attempts[end], a.place = nil, 0
	f.attempts = f.attempts[:end]
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
	return slices.Clone(f.attempts)
}

func (f *inFlight) leases() []job.LeaseID {
	all := f.all()
	leases := make([]job.LeaseID, len(all))
	for i, a := range all {
		leases[i] = a.claimed.ID
	}
	return leases
}
