// Package api is Holdfast's HTTP interface. It records jobs and shows their state; it
// never runs a job. It holds no state, so any number of processes can serve it, and
// every request is safe to repeat.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/resolve"
	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Config is what New needs. Every field must be set, unless it says otherwise.
type Config struct {
	Jobs       Jobs
	Operations Operations
	Rules      Rules
	Schedules  Schedules
	Workflows  Workflows
	// Resolver checks submissions. It may be nil: then the API has one of its own.
	Resolver *resolve.Resolver
	// Retention may be nil for an API that erases nothing.
	Retention Retention
	// Bulk may be nil for an API without operations.
	Bulk Bulk
	// Plugins may be nil: then there are none.
	Plugins    Plugins
	AllPlugins AllPlugins
	// Events may be nil: then none are recorded.
	Events Events
	// CutOff is called for every stream of events that ends because its client accepted nothing
	// for too long, or because the events could not be read. It may be nil.
	CutOff func(context.Context)
	// Guard may be nil: then everybody may do everything.
	Guard *guard.Guard
	// Logins keeps the sessions of browsers. It may be nil if nobody needs to log in.
	Logins guard.Logins
	// Audit is where it is written down what people do. It may be nil: then nothing is.
	Audit audit.Log
	// Cell is the cell of the database, if any: ids name it, and idempotency keys must be in
	// the header, where a proxy sees them.
	Cell job.Cell
	// Actor is whoever acts without credentials; it may be empty.
	Actor string
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
	// Roles are those of the process, for /readyz. They may be nil: then it needs only the
	// database.
	Roles job.Roles
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
	// Settings are the settings of the program, without secrets. It may be nil: then there are
	// none.
	Settings func() []v1.Setting
	// NoUI leaves out the web UI.
	NoUI bool
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
	sessions, acts := guard.NewSessions(c.Guard, c.Logins), audit.NewRecorder(c.Audit, c.Log, c.Actor)
	routes := newMux(c, sessions, notFound)
	serveReadiness(routes, c)
	addOperations(routes, c, sessions, acts)
	if !c.NoUI {
		serveUI(routes, c, sessions, acts, inProcess(routes), nil)
	}
	serveDescription(routes, c.Version, c.Guard)
	serveDocs(routes)
	return routes
}

// NewPages returns the handler of a process that serves the web UI alone: its pages call the
// operations of others, and say which of the cells answer. Of c, it uses Guard, Logins, Log,
// Version, MaxBodyBytes and RequestTimeout.
func NewPages(c Config, operations http.Handler, cells ui.Cells) http.Handler {
	sessions, acts := guard.NewSessions(c.Guard, c.Logins), audit.NewRecorder(nil, c.Log, "")
	routes := newMux(c, sessions, notFound)
	(&loginRoutes{sessions: sessions}).add(newRouter(routes, c.Guard, acts, c.Log, deadline{usual: c.RequestTimeout}))
	serveUI(routes, c, sessions, acts, operations, cells)
	return routes
}

// NewProbes returns the handler of a process that does not serve the API: health, readiness
// and metrics. It answers 404 to everything else.
func NewProbes(c Config) http.Handler {
	c.NoUI = true
	sessions, acts := guard.NewSessions(c.Guard, c.Logins), audit.NewRecorder(c.Audit, c.Log, c.Actor)
	routes := newMux(c, sessions, notHere(c.Roles))
	serveReadiness(routes, c)
	limits := deadline{usual: c.RequestTimeout, stopping: c.Stopping}
	newOperatorRoutes(c, limits).addMetrics(newRouter(routes.With(traced(c.Tracer)), c.Guard, acts, c.Log, limits))
	return routes
}

// newMux returns routes with what every process serves. missing answers paths without a route.
func newMux(c Config, sessions *guard.Sessions, missing http.HandlerFunc) *chi.Mux {
	routes := chi.NewMux()
	if !c.NoUI {
		routes.Use(ui.Frame)
	}
	routes.Use(nameCell(c.Cell), c.Guard.Client, observe(c.Log, c.Observe), boundFields, protect, sessions.Recognise(writeProblem), c.Guard.Admit(writeProblem), middleware.GetHead)
	routes.NotFound(c.Guard.Screen(writeProblem)(missing))
	routes.MethodNotAllowed(c.Guard.Screen(writeProblem)(methodNotAllowed(routes)))
	routes.Get("/healthz", alive)
	return routes
}

func serveReadiness(routes *chi.Mux, c Config) {
	routes.Get("/readyz", (&readiness{jobs: c.Jobs, plugins: c.Plugins, roles: c.Roles, log: c.Log}).answer)
}

// serveUI serves the pages, which call the operations.
func serveUI(routes *chi.Mux, c Config, sessions *guard.Sessions, acts *audit.Recorder, operations http.Handler, cells ui.Cells) {
	pages := ui.New(ui.Config{
		API: operations, Cells: cells, Guard: c.Guard, Sessions: sessions, Acts: acts, Log: c.Log, Version: c.Version, MaxFormBytes: c.MaxBodyBytes,
	})
	routes.Handle(ui.Root, pages)
	routes.Handle(ui.Root+"/*", pages)
}

// inProcess returns the present routes for calls within the process: without the steps that a
// request from outside has passed already.
func inProcess(routes *chi.Mux) http.Handler {
	inner := chi.NewMux()
	inner.NotFound(notFound)
	inner.MethodNotAllowed(methodNotAllowed(inner))
	outer := len(routes.Middlewares())
	_ = chi.Walk(routes, func(method, route string, handler http.Handler, steps ...func(http.Handler) http.Handler) error {
		inner.With(steps[outer:]...).Method(method, route, handler)
		return nil
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The context may have the route of the page, which is another.
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, nil)))
	})
}

func addOperations(routes chi.Router, c Config, sessions *guard.Sessions, acts *audit.Recorder) *router {
	if c.Resolver == nil {
		c.Resolver = resolve.New(c.Log, c.Cell)
	}
	limits := deadline{usual: c.RequestTimeout, stopping: c.Stopping}
	submit := &submitRoutes{
		jobs: c.Jobs, guard: c.Guard, resolver: c.Resolver,
		memory: intake.NewMemory(c.MaxReceivingBytes), maxBytes: c.MaxBodyBytes, cell: c.Cell, log: c.Log,
	}
	r := newRouter(routes.With(traced(c.Tracer)), c.Guard, acts, c.Log, limits)
	r.cell = c.Cell
	submit.add(r)
	(&resubmitRoutes{submitRoutes: submit, operations: c.Operations}).add(r)
	(&batchRoutes{submitRoutes: submit, maxBatchBytes: c.MaxBatchBytes, deadline: limits}).add(r)
	(&jobRoutes{jobs: c.Jobs, guard: c.Guard, deadline: limits}).add(r)
	(&editRoutes{jobs: c.Jobs, memory: submit.memory, maxBytes: c.MaxBodyBytes}).add(r)
	(&deadLetterRoutes{jobs: c.Jobs, guard: c.Guard}).add(r)
	(&findRoutes{jobs: c.Jobs, workflows: c.Workflows}).add(r)
	(&typeRoutes{jobs: c.Jobs}).add(r)
	newOperatorRoutes(c, limits).add(r)
	(&pluginRoutes{plugins: c.Plugins, log: c.Log}).add(r)
	(&allPluginRoutes{all: c.AllPlugins, cell: c.Cell, memory: submit.memory, log: c.Log}).add(r)
	(&workflowRoutes{submitRoutes: submit, workflows: c.Workflows, maxBytes: c.MaxBatchBytes, maxItem: c.MaxBodyBytes, log: c.Log}).add(r)
	(&ruleRoutes{rules: c.Rules, operations: c.Operations, memory: submit.memory, log: c.Log}).add(r)
	(&retentionRoutes{retention: c.Retention, jobs: c.Jobs, cell: c.Cell, memory: submit.memory, log: c.Log}).add(r)
	(&bulkRoutes{bulk: c.Bulk, operations: c.Operations, guard: c.Guard, cell: c.Cell, memory: submit.memory, log: c.Log}).add(r)
	(&scheduleRoutes{schedules: c.Schedules, guard: c.Guard, memory: submit.memory, maxBytes: c.MaxBodyBytes, log: c.Log}).add(r)
	(&auditRoutes{log: c.Audit}).add(r)
	(&loginRoutes{sessions: sessions}).add(r)
	(&eventRoutes{events: c.Events, stopping: c.Stopping, log: c.Log, cutOff: c.CutOff}).add(r)
	return r
}

func newOperatorRoutes(c Config, limits deadline) *operatorRoutes {
	return &operatorRoutes{operations: c.Operations, jobs: c.Jobs, deadline: limits, traceURL: c.TraceLink, settings: c.Settings, prometheus: c.Prometheus}
}
