package api

import (
	"net/http"
	"sync/atomic"
)

// Gate stands before the API while the program starts. Until it is opened,
// /healthz answers 200, and everything else, /readyz included, 503 with the
// reason. It reads no credentials. It is safe for concurrent use.
type Gate struct {
	reason atomic.Pointer[string]
	open   atomic.Pointer[http.Handler]
	closed http.Handler
}

// NewGate returns a closed gate. The reason is for everybody to read: say what
// the program waits for, without names or addresses.
func NewGate(reason string) *Gate {
	g := &Gate{}
	g.Wait(reason)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", alive)
	routes.HandleFunc("/", g.refuse)
	g.closed = protect(routes)
	return g
}

// Wait gives another reason why the gate is closed.
func (g *Gate) Wait(reason string) { g.reason.Store(&reason) }

// Open passes every further request on to the API.
func (g *Gate) Open(api http.Handler) { g.open.Store(&api) }

func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if api := g.open.Load(); api != nil {
		(*api).ServeHTTP(w, r)
		return
	}
	g.closed.ServeHTTP(w, r)
}

func (g *Gate) refuse(w http.ResponseWriter, _ *http.Request) {
	setRetryAfter(w)
	writeProblem(w, http.StatusServiceUnavailable, *g.reason.Load())
}
