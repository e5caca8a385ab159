package jobs

import (
	"slices"
	"sync"

	"github.com/holdfast-jobs/holdfast/internal/loop"
)

// TypedSignal wakes one loop, and remembers which job types that is about until the loop takes
// them.
type TypedSignal struct {
	woken loop.Signal

	mu    sync.Mutex
	any   bool
	types map[string]bool
}

// NewTypedSignal returns a signal that has not been raised.
func NewTypedSignal() *TypedSignal {
	return &TypedSignal{woken: loop.NewSignal(), types: make(map[string]bool)}
}

// Raise wakes the loop, now or when it waits next, about the job types; about any if types is
// nil. It never blocks.
func (s *TypedSignal) Raise(types []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.any = s.any || types == nil
	for _, jobType := range types {
		s.types[jobType] = true
	}
	s.woken.Raise()
}

// Woken is what the loop waits for.
func (s *TypedSignal) Woken() loop.Signal { return s.woken }

// Take returns the job types that the signal was raised about since the last Take; nil if it
// may be about any, and an empty slice if it was not raised. It wakes nobody for them any more.
func (s *TypedSignal) Take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.woken:
	default:
	}
	all := s.any
	types := make([]string, 0, len(s.types))
	for jobType := range s.types {
		types = append(types, jobType)
	}
	s.any = false
	clear(s.types)
	if all {
		return nil
	}
	slices.Sort(types)
	return types
}
