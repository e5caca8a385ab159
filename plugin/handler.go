package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Handler is a job type with the function that does it; see Handle.
type Handler struct {
	jobType     string
	schema      json.RawMessage
	maxAttempts int
	timeout     time.Duration
	retry       *RetryPolicy
	run         func(context.Context, *attempt) (json.RawMessage, error)
}

// Option sets something about a job type. What no option sets is decided by
// the orchestrator's configuration, which also wins over every option.
type Option func(*Handler)

// Handle makes a handler of a function without a result.
func Handle[A any](jobType string, do func(context.Context, Job[A]) error, options ...Option) Handler {
	return newHandler[A](jobType, func(ctx context.Context, a *attempt) (json.RawMessage, error) {
		j, err := newJob[A](a)
		if err != nil {
			return nil, err
		}
		return nil, do(ctx, j)
	}, options)
}

// HandleResult makes a handler of a function whose result is stored with the
// job, as JSON, and shown to clients.
func HandleResult[A, R any](jobType string, do func(context.Context, Job[A]) (R, error), options ...Option) Handler {
	return newHandler[A](jobType, func(ctx context.Context, a *attempt) (json.RawMessage, error) {
		j, err := newJob[A](a)
		if err != nil {
			return nil, err
		}
		result, err := do(ctx, j)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			return nil, Code(Permanent(fmt.Errorf("result: %w", err)), "bad_result")
		}
		return encoded, nil
	}, options)
}

func newHandler[A any](
	jobType string, run func(context.Context, *attempt) (json.RawMessage, error), options []Option,
) Handler {
	h := Handler{jobType: jobType, schema: schemaOf[A](), run: run}
	for _, option := range options {
		option(&h)
	}
	return h
}

func newJob[A any](a *attempt) (Job[A], error) {
	s := a.start
	j := Job[A]{
		ID: s.GetJobId(), Type: s.GetJobType(), Tenant: s.GetTenant(), Payload: s.GetPayload(),
		Attempt: int(s.GetAttempt()), MaxAttempts: int(s.GetMaxAttempts()), Fence: s.GetFence(), attempt: a,
	}
	if created, err := time.Parse(time.RFC3339Nano, s.GetCreatedAt()); err == nil {
		j.CreatedAt = created
	}
	if err := decodeArgs(s.GetPayload(), &j.Args); err != nil {
		return j, Code(Permanent(fmt.Errorf("payload: %w", err)), "bad_payload")
	}
	return j, nil
}

// Timeout bounds each attempt.
func Timeout(d time.Duration) Option { return func(h *Handler) { h.timeout = d } }

// MaxAttempts bounds how often a job is attempted, the first time included.
func MaxAttempts(n int) Option { return func(h *Handler) { h.maxAttempts = n } }

// Retry says how long a job waits between attempts.
func Retry(policy RetryPolicy) Option { return func(h *Handler) { h.retry = &policy } }

// WithSchema replaces the JSON Schema that is made from the Args type. It must
// not refer to anything outside of itself.
func WithSchema(schema json.RawMessage) Option { return func(h *Handler) { h.schema = schema } }

// check reports what the orchestrator would refuse.
func (h Handler) check() error {
	switch {
	case h.jobType == "":
		return errors.New("a handler has no job type")
	case len(h.jobType) > maxTypeName:
		return fmt.Errorf("job type %.20s…: the name is longer than %d bytes", h.jobType, maxTypeName)
	case h.timeout < 0:
		return fmt.Errorf("job type %s: timeout %s is below zero", h.jobType, h.timeout)
	case h.timeout > 0 && h.timeout < time.Millisecond:
		return fmt.Errorf("job type %s: timeout %s is below a millisecond", h.jobType, h.timeout)
	case h.maxAttempts < 0:
		return fmt.Errorf("job type %s: max attempts %d is below zero", h.jobType, h.maxAttempts)
	case len(h.schema) > 0 && !json.Valid(h.schema):
		return fmt.Errorf("job type %s: the schema is not JSON", h.jobType)
	}
	if h.retry != nil {
		if err := h.retry.check(); err != nil {
			return fmt.Errorf("job type %s: retry: %w", h.jobType, err)
		}
	}
	return nil
}

// maxTypeName is what the orchestrator accepts, in bytes.
const maxTypeName = 200
