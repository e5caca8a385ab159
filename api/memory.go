package api

import (
	"io"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// memory bounds what the bodies that are being received take together, however
// many clients send them and however slowly. What does not fit is refused, not
// waited for: those who wait would hold on to what others need.
type memory struct {
	mu      sync.Mutex
	bounded bool
	left    int
}

// newMemory returns one for so many bytes; 0 for as many as there are.
func newMemory(bytes int64) *memory { return &memory{bounded: bytes > 0, left: int(bytes)} }

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
		return huma.ErrorWithHeaders(
			problem(http.StatusServiceUnavailable, "too much is being received at once; try again"),
			http.Header{"Retry-After": {retryAfterSeconds}})
	}
	s.held += bytes
	s.of.left -= counted
	return nil
}

// release gives everything back.
func (s *share) release() { _ = s.hold(-s.held) }

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
