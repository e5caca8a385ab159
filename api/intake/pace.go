package intake

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// pacedBody applies the server's read timeout to each line instead of to the whole
// body. Only one goroutine may read it.
type pacedBody struct {
	body    io.Reader
	control *http.ResponseController
	timeout time.Duration
	wanted  context.Context
	fresh   bool // the next line has not begun
}

// newPacedBody returns a body that can be read while it is wanted.
func newPacedBody(wanted context.Context, r *http.Request, control *http.ResponseController) *pacedBody {
	return &pacedBody{body: r.Body, control: control, timeout: ServerOf(r).ReadTimeout, wanted: wanted}
}

// nextLine starts the timeout of the next line.
func (p *pacedBody) nextLine() { p.fresh = true }

func (p *pacedBody) Read(into []byte) (int, error) {
	if p.fresh && p.timeout > 0 {
		_ = p.control.SetReadDeadline(time.Now().Add(p.timeout))
	}
	p.fresh = false
	if err := p.wanted.Err(); err != nil { // Checked last: the deadline may have replaced that of end.
		return 0, err
	}
	return p.body.Read(into)
}

// end ends the read in progress, once the body is not wanted any more.
func (p *pacedBody) end() { _ = p.control.SetReadDeadline(time.Unix(1, 0)) }

// ServerOf returns the server that received the request, or one without any
// settings.
func ServerOf(r *http.Request) *http.Server {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		return server
	}
	return &http.Server{}
}

// HangUp makes the server close the connection after the answer. With full duplex, the
// server would otherwise read the rest of the body as the next request. MaxBytesReader
// is the only way to ask for that, and it leaves the client time to read the answer.
func HangUp(w http.ResponseWriter) {
	for {
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			break
		}
		w = wrapper.Unwrap()
	}
	beyond := http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0)
	_, _ = beyond.Read(make([]byte, 1))
}
