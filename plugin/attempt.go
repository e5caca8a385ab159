package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// attempt is one start on a session's stream.
type attempt struct {
	start   *handlerv1.Start
	session *session
	end     context.CancelCauseFunc
	lease   lease
	// notes is the outbox's.
	notes notes

	mu    sync.Mutex
	asked error
}

type attemptKey struct{}

// current is the attempt that ctx belongs to; nil outside of one.
func current(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// TraceContext returns the W3C traceparent and tracestate of the attempt that
// ctx belongs to, for requests that the handler makes without OpenTelemetry. With
// it, the attempt's span is the parent of any that is begun in ctx. They are empty
// when the job is not traced.
func TraceContext(ctx context.Context) (traceparent, tracestate string) {
	if a := current(ctx); a != nil {
		return a.start.GetTraceparent(), a.start.GetTracestate()
	}
	return "", ""
}

// perform runs the handler's function to its end, whichever way it ends, and
// reports the outcome.
func (a *attempt) perform(ctx context.Context, h Handler) {
	var ended *handlerv1.Outcome
	defer func() {
		if problem := recover(); problem != nil {
			ended = panicked(problem, debug.Stack())
		}
		if ended == nil { // runtime.Goexit
			ended = panicked("the handler has ended its own goroutine", nil)
		}
		a.lease.release()
		a.session.finish(a, ended)
	}()
	result, err := h.run(ctx, a)
	a.tellReason(ctx, err)
	ended = outcome(result, err, a.reason(), context.Cause(ctx))
}

// tellReason logs why the handler has canceled its own job: the outcome has no
// place for it.
func (a *attempt) tellReason(ctx context.Context, err error) {
	if err == nil {
		return
	}
	if own := new(cancel); errors.As(err, &own) && own.reason != nil {
		a.logger(trace.SpanContextFromContext(ctx)).Info("the handler cancels its job", "reason", own.reason.Error())
	}
}

// stop asks the function to end. The first reason counts.
func (a *attempt) stop(reason error) {
	a.mu.Lock()
	if a.asked == nil {
		a.asked = reason
	}
	a.mu.Unlock()
	a.end(reason)
}

// reason is why the orchestrator asked the function to end; nil if it did not.
func (a *attempt) reason() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// unknownType is not permanent: another process may well serve the type.
func unknownType(_ context.Context, a *attempt) (json.RawMessage, error) {
	return nil, Code(fmt.Errorf("this binary has no handler for %s", a.start.GetJobType()), codeUnknownType)
}
