package runtime

import (
	"sync"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// holdings are the attempts whose leases this worker holds: from the claim
// until the settlement is known to be committed.
type holdings struct {
	mu       sync.Mutex
	attempts map[job.LeaseID]*attempt
	running  int
	freed    signal // raised when there may be room again: a handler is done, or an attempt settled
	emptied  signal // raised when nothing is held any more
	idle     signal // raised when no handler is running any more
}

func newHoldings() *holdings {
	return &holdings{attempts: make(map[job.LeaseID]*attempt), freed: newSignal(), emptied: newSignal(), idle: newSignal()}
}

func (h *holdings) add(a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts[a.claimed.ID] = a
}

// begun counts an attempt whose handler is about to be started.
func (h *holdings) begun() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running++
}

// putOff takes back that a handler was about to be started.
func (h *holdings) putOff() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.running == 0 {
		h.idle.raise()
	}
}

// finished counts an attempt whose handler is done, or was never started, but
// that is still to be settled.
func (h *holdings) finished(started bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if started {
		h.running--
	}
	h.freed.raise()
	if h.running == 0 {
		h.idle.raise()
	}
}

func (h *holdings) remove(id job.LeaseID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.attempts, id)
	h.freed.raise()
	if len(h.attempts) == 0 {
		h.emptied.raise()
	}
}

// counts returns how many handlers run, and how many leases are held in all.
func (h *holdings) counts() (running, held int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running, len(h.attempts)
}

func (h *holdings) all() []*attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*attempt, 0, len(h.attempts))
	for _, a := range h.attempts {
		list = append(list, a)
	}
	return list
}

func (h *holdings) leases() []job.LeaseID {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]job.LeaseID, 0, len(h.attempts))
	for id := range h.attempts {
		list = append(list, id)
	}
	return list
}
