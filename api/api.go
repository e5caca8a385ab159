// Package api is Holdfast's HTTP interface. It records jobs and shows their state; it
// never runs a job. It holds no state, so any number of processes can serve it, and
// every request is safe to repeat.
package api

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
)

// Config is what New needs. Every field must be set, unless it says otherwise.
type Config struct {
	Jobs       Jobs
	Operations Operations
	Rules      Rules
	// Plugins may be nil: then there are none.
	Plugins Plugins
	// Guard may be nil: then everybody may do everything.
	Guard *guard.Guard
	Log   *slog.Logger
	// MaxBodyBytes bounds the body of a submission.
	MaxBodyBytes int64
	// MaxBatchBytes bounds the body of a batch that is answered as a whole.
	MaxBatchBytes int64
	// MaxReceivingBytes bounds the memory of all bodies that are being received; 0
	// is no bound.
	MaxReceivingBytes int64
	// RequestTimeout bounds the work on one request, once its header has been read.
	RequestTimeout time.Duration
	// When Stopping is closed, long waits and streams end, so that the server can stop.
	// It may be nil.
	Stopping <-chan struct{}
	// Version is shown in the OpenAPI document.
	Version string
	// Observe is called for every answered request, with the pattern of its route (empty
	// if none matched), the method, and the status (0 if there was no answer). It may be
	// nil.
	Observe func(route, method string, status int, took time.Duration)
	// Tracer makes the spans of requests; nil for none.
	Tracer trace.Tracer
	// TraceLink is the address of a trace, with {trace_id} for its id; empty for
	// none.
	TraceLink string
	// Prometheus answers requests for metrics in its format. It may be nil: then
	// they are refused.
	Prometheus http.Handler
}

// These suit most services.
const (
	DefaultMaxBodyBytes      = 1 << 20
	DefaultMaxBatchBytes     = 32 << 20
	DefaultMaxReceivingBytes = 256 << 20
	DefaultRequestTimeout    = 30 * time.Second
)

// New returns the handler of all routes.
func New(c Config) http.Handler {
	routes := chi.NewMux()
	routes.Use(c.Guard.Client, observe(c.Log, c.Observe), boundFields, protect, c.Guard.Admit(writeProblem), middleware.GetHead)
	routes.NotFound(notFound)
	routes.MethodNotAllowed(methodNotAllowed(routes))
	routes.Get("/healthz", alive)
	routes.Get("/readyz", ready(c.Jobs, c.Log))
	addOperations(routes, c)
	serveDescription(routes, c.Version, c.Guard)
	serveDocs(routes)
	return routes
}

func addOperations(routes chi.Router, c Config) *router {
	limits := deadline{usual: c.RequestTimeout, stopping: c.Stopping}
	submit := &submitRoutes{
		jobs: c.Jobs, guard: c.Guard, payloads: newPayloads(c.Log),
		memory: intake.NewMemory(c.MaxReceivingBytes), maxBytes: c.MaxBodyBytes, log: c.Log,
	}
	r := newRouter(routes.With(traced(c.Tracer)), c.Guard, c.Log, limits)
	submit.add(r)
	(&batchRoutes{submitRoutes: submit, maxBatchBytes: c.MaxBatchBytes, deadline: limits}).add(r)
	(&jobRoutes{jobs: c.Jobs, guard: c.Guard, deadline: limits}).add(r)
	(&editRoutes{jobs: c.Jobs, memory: submit.memory, maxBytes: c.MaxBodyBytes}).add(r)
	(&deadLetterRoutes{jobs: c.Jobs, guard: c.Guard}).add(r)
	(&typeRoutes{jobs: c.Jobs}).add(r)
	(&operatorRoutes{operations: c.Operations, jobs: c.Jobs, deadline: limits, traceURL: c.TraceLink, prometheus: c.Prometheus}).add(r)
	(&pluginRoutes{plugins: c.Plugins, log: c.Log}).add(r)
	(&ruleRoutes{rules: c.Rules, operations: c.Operations, memory: submit.memory, log: c.Log}).add(r)
	return r
}
