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
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// attempt is one start on a session's stream.
type attempt struct {
	start    *handlerv1.Start
	session  *session
	handler  func(context.Context, *attempt) (json.RawMessage, error)
	lifetime lifetime
	// lease belongs to the session.
	lease lease
	// unsent belongs to the outbox.
	unsent unsent

	// success is the outcome if the handler succeeds.
	success protocol.Success

	mu        sync.Mutex
	asked     error
	followUps followUps
}

type attemptKey struct{}

// current is the attempt that ctx belongs to; nil outside of one.
func current(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// run runs the handler's function to its end and reports the outcome.
func (a *attempt) run() {
	defer a.lifetime.end(nil)
	var ended *handlerv1.Outcome
	defer func() {
		if problem := recover(); problem != nil {
			ended = panicked(problem, debug.Stack())
		}
		if ended == nil { // runtime.Goexit
			ended = panicked("the handler has ended its own goroutine", nil)
		}
		a.attach(ended)
		a.session.finish(a, ended)
	}()
	result, err := a.handler(&a.lifetime, a)
	if err == nil {
		ended = a.success.Outcome(0, result) // finish adds the handle
		return
	}
	a.logReason(err)
	ended = errorOutcome(err, a.reason(), context.Cause(&a.lifetime))
}

// logReason logs why the handler cancels its own job: the outcome has no place for
// it.
func (a *attempt) logReason(err error) {
	if own := new(cancel); errors.As(err, &own) && own.reason != nil {
		a.logger(trace.SpanContextFromContext(&a.lifetime)).Info("the handler cancels its job", "reason", own.reason.Error())
	}
}

// stop asks the function to end. The first reason counts.
func (a *attempt) stop(reason error) {
	a.mu.Lock()
	if a.asked == nil {
		a.asked = reason
	}
	a.mu.Unlock()
	a.lifetime.end(reason)
}

// reason is why the orchestrator asked the function to end; nil if it did not.
func (a *attempt) reason() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// unknownType runs a job of a type without a handler. The failure is not permanent:
// another process may have the handler.
func unknownType(_ context.Context, a *attempt) (json.RawMessage, error) {
	return nil, Code(fmt.Errorf("this plugin has no handler for %s", a.start.GetJobType()), codeUnknownType)
}
