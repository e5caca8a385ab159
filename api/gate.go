package api

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Gate stands before the API while the program starts. Until it is opened, /healthz
// answers 200. Everything else, including /readyz, answers 503 with the reason. The
// gate reads no credentials. It is safe for concurrent use.
type Gate struct {
	reason atomic.Pointer[string]
	open   atomic.Pointer[http.Handler]
	closed http.Handler
}

// NewGate returns a closed gate. Everybody can read the reason: say what the
// program waits for, without names or addresses.
func NewGate(reason string) *Gate {
	g := &Gate{}
	g.Wait(reason)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", alive)
	routes.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { write(w, v1.Unavailable(*g.reason.Load())) })
	g.closed = ui.Frame(protect(routes))
	return g
}

// Wait changes the reason why the gate is closed.
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

// alive answers as long as the process serves at all.
func alive(w http.ResponseWriter, _ *http.Request) { writeOK(w) }

func writeOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", mediaJSON)
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
}
