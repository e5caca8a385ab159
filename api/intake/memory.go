// Package intake takes in the bodies of requests. It bounds the memory that all of
// them take together and the time that each may take, and reads long streams of
// lines ahead of their use.
package intake

import (
	"runtime"
	"sync"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Memory bounds the total memory of the bodies that are being received, whatever the
// number and the speed of the clients. A body that does not fit is refused at once: a
// waiting request would hold memory that others need.
//
// Memory that is given back stays allocated until the next garbage collection, which
// the runtime delays until the heap has doubled. Therefore Memory starts a collection
// when that garbage reaches a fraction of the bound.
type Memory struct {
	mu      sync.Mutex
	bounded bool
	left    int
	// garbage is what has become garbage since the last collection.
	garbage, mostGarbage int
	collect              func()
}

const (
	// garbagePart is the part of the bound that may be garbage.
	garbagePart = 4
	// copies is about how often a body is copied on its way into the database.
	copies = 4
	// freeBytes of each request are not counted, so that small submissions are
	// accepted however many large ones there are.
	freeBytes = 16 << 10
)

// NewMemory returns a Memory with a bound in bytes; 0 is no bound.
func NewMemory(bytes int64) *Memory {
	return &Memory{bounded: bytes > 0, left: int(bytes), mostGarbage: int(bytes) / garbagePart, collect: runtime.GC}
}

// Share is the part of the memory that one request holds. It may be used concurrently.
type Share struct {
	of   *Memory
	held int // guarded by the memory
}

// Share returns a share that holds nothing yet. Release it.
func (m *Memory) Share() *Share { return &Share{of: m} }

// Hold reserves memory for the request; a negative number gives memory back. The error
// is the answer that refuses the request.
func (s *Share) Hold(bytes int) error {
	if !s.of.bounded {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	counted := max(s.held+bytes-freeBytes, 0) - max(s.held-freeBytes, 0)
	if counted > s.of.left {
		return v1.Unavailable("too much is being received at once; try again")
	}
	s.held += bytes
	s.of.left -= counted
	return nil
}

// Done gives back text that has been stored or refused.
func (s *Share) Done(bytes int) {
	garbage := 0
	if bytes > freeBytes {
		garbage = copies * bytes
	}
	s.give(bytes, garbage)
}

// Release gives everything back.
func (s *Share) Release() { s.Done(s.held) }

// give gives back memory, and counts the garbage that this makes.
func (s *Share) give(bytes, garbage int) {
	if !s.of.bounded {
		return
	}
	_ = s.Hold(-bytes)
	s.of.mu.Lock()
	s.of.garbage += garbage
	due := s.of.garbage > s.of.mostGarbage
	if due {
		s.of.garbage = 0
	}
	s.of.mu.Unlock()
	if due {
		s.of.collect()
	}
}
