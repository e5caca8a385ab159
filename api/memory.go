package api

import (
	"io"
	"runtime"
	"sync"
)

// memory bounds what the bodies that are being received take together, however
// many clients send them and however slowly. What does not fit is refused, not
// waited for: those who wait would hold on to what others need.
//
// What is given back is still there until the next garbage collection, which
// the runtime puts off until the heap has doubled. So memory collects by itself
// when that has come to a fraction of the bound.
type memory struct {
	mu      sync.Mutex
	bounded bool
	left    int
	// spent is what has become garbage since the last collection.
	spent, mostSpent int
	collect          func()
}

// newMemory returns one for so many bytes; 0 for as many as there are.
func newMemory(bytes int64) *memory {
	return &memory{bounded: bytes > 0, left: int(bytes), mostSpent: int(bytes) / spentPart, collect: runtime.GC}
}

const (
	// spentPart is which part of the bound may be garbage.
	spentPart = 4
	// copies is how often a body is copied on its way into the database, about.
	copies = 4
)

// freeBytes are not counted of each request, so that small submissions are
// taken however many large ones there are.
const freeBytes = 16 << 10

// share is what one request holds of the memory. It may be used concurrently.
type share struct {
	of   *memory
	held int // guarded by the memory
}

func (m *memory) share() *share { return &share{of: m} }

// hold adds to what the request holds; a negative number gives back. It
// returns the answer that refuses the request.
func (s *share) hold(bytes int) error {
	if s == nil || !s.of.bounded {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	counted := max(s.held+bytes-freeBytes, 0) - max(s.held-freeBytes, 0)
	if counted > s.of.left {
		return unavailable("too much is being received at once; try again")
	}
	s.held += bytes
	s.of.left -= counted
	return nil
}

// give gives back what nobody refers to any more.
func (s *share) give(bytes int) {
	if s == nil || !s.of.bounded || bytes == 0 {
		return
	}
	_ = s.hold(-bytes)
	s.of.waste(bytes)
}

// done gives back lines that have been stored or refused.
func (s *share) done(bytes int) {
	if s == nil || !s.of.bounded {
		return
	}
	_ = s.hold(-bytes)
	if bytes > freeBytes {
		s.of.waste(copies * bytes)
	}
}

// release gives everything back, when all is done with it.
func (s *share) release() {
	s.done(s.held)
}

// waste counts garbage, and collects it when it has become much.
func (m *memory) waste(bytes int) {
	m.mu.Lock()
	m.spent += bytes
	due := m.spent > m.mostSpent
	if due {
		m.spent = 0
	}
	m.mu.Unlock()
	if due {
		m.collect()
	}
}

// holding counts what is read as held.
func (s *share) holding(body io.Reader) io.Reader { return &heldReader{body: body, share: s} }

type heldReader struct {
	body  io.Reader
	share *share
}

func (h *heldReader) Read(into []byte) (int, error) {
	n, err := h.body.Read(into)
	if refused := h.share.hold(n); refused != nil {
		return 0, refused
	}
	return n, err
}
