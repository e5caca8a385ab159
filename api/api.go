// Package api is Holdfast's HTTP interface. It records what clients want and
// shows what became of it; it never executes a job. It holds no state, so any
// number of processes can serve it, and every request is safe to repeat.
package api

import (
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Config is what New needs. Every field must be set, unless it says otherwise.
type Config struct {
	Jobs       Jobs
	Operations Operations
	// Plugins may be nil: then there are none.
	Plugins Plugins
	// Guard may be nil: then everybody may do everything.
	Guard *guard.Guard
	Log   *slog.Logger
	// MaxBodyBytes bounds the body of a submission.
	MaxBodyBytes int64
	// MaxBatchBytes bounds the body of a batch that is answered as a whole.
	MaxBatchBytes int64
	// MaxReceivingBytes bounds what the bodies that are being received may take
	// together; 0 for no bound.
	MaxReceivingBytes int64
	// RequestTimeout bounds the work on one request, from the moment its
	// header has been read.
	RequestTimeout time.Duration
	// Stopping, when it is closed, ends what clients wait for or send on and
	// on, so that the server can stop. It may be nil.
	Stopping <-chan struct{}
	// Version is shown in the OpenAPI document.
	Version string
	// Observe is told of every request that has been answered: by which
	// route, as the router writes it and empty for none, and with which
	// status, 0 for no answer. It may be nil.
	Observe func(route, method string, status int, took time.Duration)
	// Tracer makes the spans of requests; nil for none.
	Tracer trace.Tracer
	// TraceLink is the address of a trace, with {trace_id} for its id; empty for
	// none.
	TraceLink string
	// Prometheus answers those who ask for metrics in its format. It may be
	// nil: then nobody does.
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
	router := chi.NewMux()
	router.Use(c.Guard.Client, observe(c.Log, c.Observe), bounded, protect, c.Guard.Admit(writeProblem), middleware.GetHead)
	router.NotFound(notFound)
	router.MethodNotAllowed(methodNotAllowed(router))

	s := &service{
		jobs: c.Jobs, operations: c.Operations, plugins: c.Plugins, guard: c.Guard, log: c.Log, schemas: newSchemas(c.Log),
		maxBodyBytes: c.MaxBodyBytes, maxBatchBytes: c.MaxBatchBytes, memory: newMemory(c.MaxReceivingBytes), requestTimeout: c.RequestTimeout, stopping: c.Stopping,
		traceLink: c.TraceLink,
	}
	router.Get("/healthz", alive)
	router.Get("/readyz", s.ready)

	var document *huma.OpenAPI
	router.Group(func(r chi.Router) {
		r.Use(traced(c.Tracer))
		routes := humachi.New(r, humaConfig(c.Version))
		guardOperations(routes, c.Guard)
		routes.UseMiddleware(speakJSON, deadline(c.RequestTimeout))
		s.addSubmit(routes)
		s.addBatch(routes)
		s.addJobs(routes)
		s.addDeadLetters(routes)
		s.addTypes(routes)
		s.addOperations(routes, c.Prometheus)
		document = routes.OpenAPI()
		describe(document)
	})
	serveDocument(router, document)
	serveDocs(router)
	return router
}

// service answers the routes that read or write the ledger.
type service struct {
	jobs           Jobs
	operations     Operations
	plugins        Plugins
	guard          *guard.Guard
	log            *slog.Logger
	schemas        *schemas
	maxBodyBytes   int64
	maxBatchBytes  int64
	memory         *memory
	requestTimeout time.Duration
	stopping       <-chan struct{}
	traceLink      string
	// measuring shares the work on metrics among those who wait for it.
	measuring singleflight.Group
	// diagnosing is held while a diagnosis is under way.
	diagnosing sync.Mutex
}

// humaConfig leaves out what huma would add by itself: documentation pages
// from a CDN, and links to schemas in every answer.
func humaConfig(version string) huma.Config {
	config := huma.DefaultConfig("Holdfast", version)
	config.CreateHooks = nil
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[v1.Problem]())
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Transformers = []huma.Transformer{discreet}
	return config
}
