package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	mediaJSON  = "application/json"
	mediaLines = "application/x-ndjson"
)

// router is where operations are added.
type router struct {
	huma.API
	guard    *guard.Guard
	acts     *audit.Recorder
	log      *slog.Logger
	deadline deadline
	// cell is that of the database, if any.
	cell job.Cell
}

func newRouter(routes chi.Router, g *guard.Guard, acts *audit.Recorder, log *slog.Logger, d deadline) *router {
	config := huma.DefaultConfig("", "")
	// Neither documentation from a CDN nor links to schemas in every answer.
	config.CreateHooks = nil
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[v1.Problem]())
	config.Transformers = []huma.Transformer{discreet, withhold}
	return &router{API: humachi.New(routes, config), guard: g, acts: acts, log: log, deadline: d}
}

// option says how an operation differs from most.
type option int

const (
	// acrossTenants refuses callers that are bound to a tenant.
	acrossTenants option = iota
	// ownDeadline is for operations whose time depends on the request.
	ownDeadline
	// accepts answers 202, not 200.
	accepts
	// showsPayloads needs the scope payloads as well, because the answer consists of what
	// clients and handlers put into jobs.
	showsPayloads
	// takesBody is for operations that read a body. The others refuse one.
	takesBody
	// mayBeStale is for lists and figures, which may come from a replica of the database.
	mayBeStale
)

// withBody is the metadata of an operation that has takesBody.
const withBody = "body"

// add adds an operation: its route, such as "GET /jobs/{id}", its id in the
// description, the scope that callers need, and what answers it. An error that the
// answer returns is translated by problemOf.
func add[In, Out any](r *router, route, id string, scope guard.Scope, answer func(context.Context, *In) (*Out, error), options ...option) {
	method, path, _ := strings.Cut(route, " ")
	has := map[option]bool{}
	for _, o := range options {
		has[o] = true
	}
	operation := huma.Operation{
		OperationID: id, Method: method, Path: path, DefaultStatus: http.StatusOK,
		Middlewares: huma.Middlewares{r.permit(scope, has)},
		// Parameters check themselves. huma would check their text.
		SkipValidateParams: true,
		Extensions:         map[string]any{"x-scope": scope},
	}
	if has[showsPayloads] {
		operation.Extensions["x-also-scope"] = guard.Payloads
	}
	if has[takesBody] {
		operation.Metadata = map[string]any{withBody: true}
	}
	if has[mayBeStale] {
		operation.Metadata = map[string]any{canBeStale: true}
		operation.Middlewares = append(operation.Middlewares, tellAge)
	}
	if method == http.MethodGet {
		operation.Middlewares = append(operation.Middlewares, r.limitReads)
	} else {
		operation.Middlewares = append(huma.Middlewares{r.record(scope)}, operation.Middlewares...)
		operation.Parameters = append(operation.Parameters, reasonParameter())
	}
	if strings.Contains(path, "{id}") {
		operation.Middlewares = append(operation.Middlewares, r.onlyOwnIDs)
	}
	if !has[ownDeadline] {
		operation.Middlewares = append(operation.Middlewares, r.deadline.apply)
	}
	if has[accepts] {
		operation.DefaultStatus = http.StatusAccepted
	}
	operation.Middlewares = append(operation.Middlewares, speakJSON)
	huma.Register(r.API, operation, func(ctx context.Context, in *In) (*Out, error) {
		out, err := answer(ctx, in)
		if err != nil {
			refusal := problemOf(ctx, r.log, err)
			audit.Failed(ctx, refusal)
			return nil, refusal
		}
		audit.Answered(ctx, out)
		return out, nil
	})
}

// permit lets callers use the operations that they may use.
func (r *router) permit(scope guard.Scope, has map[option]bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		err := r.guard.Permit(ctx.Context(), scope)
		if err == nil && has[showsPayloads] {
			err = r.guard.Permit(ctx.Context(), guard.Payloads)
		}
		if err == nil && has[acrossTenants] {
			err = guard.PermitAllTenants(ctx.Context())
		}
		if err != nil {
			audit.Refused(ctx.Context(), err)
			_, w := humachi.Unwrap(ctx)
			guard.RefuseAs(w, err, writeProblem)
			return
		}
		next(ctx)
	}
}

// limitReads counts a request that only reads. The answer shows the remaining quota
// only if the request is refused.
func (r *router) limitReads(ctx huma.Context, next func(huma.Context)) {
	if allowance := r.guard.Take(ctx.Context(), guard.Reads, 1); !allowance.Allowed {
		_, w := humachi.Unwrap(ctx)
		maps.Copy(w.Header(), allowance.Header)
		writeProblem(w, http.StatusTooManyRequests, allowance.Detail)
		return
	}
	next(ctx)
}

// jsonContext has JSON as the one format that huma can choose. It would label an
// answer with any name for JSON that the client accepts, such as "problem+json" for
// a success.
type jsonContext struct{ humaContext }

type humaContext = huma.Context // which has a method Context

func (c jsonContext) Unwrap() huma.Context { return c.humaContext }

func (c jsonContext) Header(name string) string {
	if strings.EqualFold(name, "Accept") {
		return mediaJSON
	}
	return c.humaContext.Header(name)
}

func speakJSON(ctx huma.Context, next func(huma.Context)) { next(jsonContext{ctx}) }

func newEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

func answerJSON(status int, body any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", mediaJSON)
		ctx.SetStatus(status)
		_ = newEncoder(ctx.BodyWriter()).Encode(body) // It fails when the client has left.
	}}
}

// deadline bounds the work on requests.
type deadline struct {
	usual time.Duration
	// stopping is closed when the server stops; nil for never.
	stopping <-chan struct{}
}

func (d deadline) apply(ctx huma.Context, next func(huma.Context)) {
	bounded, cancel := context.WithTimeout(ctx.Context(), d.usual)
	defer cancel()
	next(huma.WithContext(ctx, bounded))
}

// orStop bounds work by a time, and by that of the server.
func (d deadline) orStop(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	go func() {
		select {
		case <-d.stopping:
			cancel()
		case <-bounded.Done():
		}
	}()
	return bounded, cancel
}
