package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
	"unicode"

	"github.com/holdfast-jobs/holdfast/plugin/internal/schema"
)

// Handler is a job type with the function that runs its jobs; see Handle.
type Handler struct {
	jobType     string
	schema      json.RawMessage
	maxAttempts int
	timeout     time.Duration
	retry       *RetryPolicy
	description string
	concurrency int
	terms       *Terms
	run         func(context.Context, *attempt) (json.RawMessage, error)
	// problem is the first thing wrong with the handler. Serve reports it.
	problem error
}

// Handle makes a handler from a function without a result. Unmarshal decodes the
// payload into A. If it cannot, the job fails for good and the function is not
// called.
func Handle[A any](jobType string, do func(context.Context, Job[A]) error, options ...Option) Handler {
	return newHandler(jobType, do == nil, options, func(ctx context.Context, j Job[A]) (json.RawMessage, error) {
		return nil, do(ctx, j)
	})
}

// HandleResult makes a handler from a function with a result, which is stored with
// the job, as JSON, and shown to clients.
func HandleResult[A, R any](jobType string, do func(context.Context, Job[A]) (R, error), options ...Option) Handler {
	return newHandler(jobType, do == nil, options, func(ctx context.Context, j Job[A]) (json.RawMessage, error) {
		result, err := do(ctx, j)
		if err != nil {
			return nil, err
		}
		encoded, err := encode(result, j.attempt.session.limits.result)
		if err == nil {
			return encoded, nil
		}
		code := codeBadResult
		if isTooLarge(err) {
			code = codeResultTooLarge
		}
		return nil, Code(Permanent(fmt.Errorf("result: %w", err)), code)
	})
}

func newHandler[A any](
	jobType string, missing bool, options []Option, run func(context.Context, Job[A]) (json.RawMessage, error),
) Handler {
	h := Handler{jobType: jobType, run: func(ctx context.Context, a *attempt) (json.RawMessage, error) {
		j, err := newJob[A](a)
		if err != nil {
			return nil, err
		}
		return run(ctx, j)
	}}
	h.checkName()
	if missing {
		h.reject("the function is nil")
	}
	for _, option := range options {
		option.set(&h)
	}
	if h.schema == nil {
		var err error
		if h.schema, err = schema.Of(reflect.TypeFor[A]()); err != nil {
			h.reject("schema of %s: %w; change the type or use WithSchema", reflect.TypeFor[A](), err)
		}
	}
	return h
}

// maxTypeName is the longest name that the orchestrator accepts, in bytes.
const maxTypeName = 200

func (h *Handler) checkName() {
	switch {
	case h.jobType == "":
		h.reject("the name is empty")
	case len(h.jobType) > maxTypeName:
		h.reject("the name is longer than %d bytes", maxTypeName)
	case !printable(h.jobType):
		h.reject("the name holds a character that cannot be printed")
	}
}

func (h *Handler) reject(format string, values ...any) {
	if h.problem == nil {
		h.problem = fmt.Errorf("job type %.40q: "+format, append([]any{h.jobType}, values...)...)
	}
}

func printable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}
