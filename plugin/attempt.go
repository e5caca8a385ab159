package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// leaseMargin is how much of the lease is left when an attempt is told that it
// is not extended: a sixth, at most leaseMarginMost.
const (
	leaseMargin     = 6
	leaseMarginMost = 5 * time.Second
)

// attempt is one start on a session's stream: the handler's function on one
// side, the lease on the other.
type attempt struct {
	start   *handlerv1.Start
	session *session
	end     context.CancelCauseFunc

	mu       sync.Mutex
	lease    *time.Timer // tells the attempt that its lease runs out
	exit     *time.Timer // ends the process when the lease has run out
	shutDown error       // why the orchestrator asked the attempt to stop
	over     bool
}

// perform runs the handler's function to its end and reports the outcome.
func (a *attempt) perform(ctx context.Context, h Handler) {
	result, err := a.call(ctx, h)
	a.mu.Lock()
	a.over = true
	a.lease.Stop()
	if a.exit != nil {
		a.exit.Stop()
	}
	asked := a.shutDown
	a.mu.Unlock()
	a.session.finish(a, outcome(result, err, asked, context.Cause(ctx)))
}

// call turns a panic into an error.
func (a *attempt) call(ctx context.Context, h Handler) (result json.RawMessage, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = &panicked{problem: problem, stack: string(debug.Stack())}
		}
	}()
	return h.run(ctx, a)
}

type panicked struct {
	problem any
	stack   string
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.problem) }

// outcome translates what the function returned. asked is why the
// orchestrator asked it to stop, if it did, and cause why its context ended.
func outcome(result json.RawMessage, err, asked, cause error) *handlerv1.Outcome {
	if err == nil {
		return &handlerv1.Outcome{Result: &handlerv1.Outcome_Succeeded{Succeeded: &handlerv1.Succeeded{Result: result}}}
	}
	var byHandler *cancel
	var later *snooze
	var panicking *panicked
	switch {
	case errors.As(err, &panicking):
		return failure(&handlerv1.Failed{Code: "panic", Message: clean(err.Error()), Stack: clean(panicking.stack)})
	case errors.As(err, &byHandler):
		return &handlerv1.Outcome{Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}}
	case asked == nil && errors.Is(cause, ErrLeaseLost):
		return failure(&handlerv1.Failed{Code: wire.CodeLeaseLost, Message: clean(err.Error())})
	case asked != nil && !errors.Is(asked, ErrTimeout):
		return &handlerv1.Outcome{Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}}
	case errors.As(err, &later):
		return &handlerv1.Outcome{Result: &handlerv1.Outcome_Snoozed{
			Snoozed: &handlerv1.Snoozed{RetryAfterMs: millis(later.after)},
		}}
	}
	wish := wishes(err)
	failed := &handlerv1.Failed{Permanent: wish.permanent, Code: clean(wish.code), Message: clean(err.Error())}
	if errors.Is(cause, ErrTimeout) && !wish.permanent {
		failed.Code = wire.CodeTimeout
	}
	if wish.retryAfter != nil {
		after := millis(*wish.retryAfter)
		failed.RetryAfterMs = &after
	}
	return failure(failed)
}

func failure(failed *handlerv1.Failed) *handlerv1.Outcome {
	return &handlerv1.Outcome{Result: &handlerv1.Outcome_Failed{Failed: failed}}
}

// clean makes a text fit for the wire, which takes valid UTF-8 only, and for
// the database, which takes no NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// stop asks the function to end.
func (a *attempt) stop(reason error) {
	a.mu.Lock()
	if a.shutDown == nil {
		a.shutDown = reason
	}
	a.mu.Unlock()
	a.end(reason)
}

// extend says that the lease is proven for so long from now. It runs out
// again unless it is extended in time; then the function is asked to end, and
// if it has not by the end of the lease, so does the process: the job may
// belong to somebody else from then on.
func (a *attempt) extend(lease time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	if a.exit != nil {
		a.exit.Stop()
		a.exit = nil
	}
	margin := min(lease/leaseMargin, leaseMarginMost)
	if a.lease != nil {
		a.lease.Reset(lease - margin)
		return
	}
	a.lease = time.AfterFunc(lease-margin, func() { a.runOut(margin) })
}

func (a *attempt) runOut(margin time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.end(ErrLeaseLost)
	a.exit = time.AfterFunc(margin, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.over {
			a.session.abandon(fmt.Sprintf("job %s: the lease ran out and the handler does not stop", a.start.GetJobId()))
		}
	})
}

func (a *attempt) progress(encoded []byte) {
	a.session.send(func(m *handlerv1.WorkResponse) int {
		m.Progress = append(m.Progress, &handlerv1.Progress{Handle: a.start.GetHandle(), Progress: encoded})
		return len(encoded)
	})
}

func (a *attempt) checkpoint(encoded []byte) {
	a.session.send(func(m *handlerv1.WorkResponse) int {
		m.Checkpoints = append(m.Checkpoints, &handlerv1.Checkpoint{Handle: a.start.GetHandle(), Checkpoint: encoded})
		return len(encoded)
	})
}

// exitProcess ends the process with a word of explanation.
func exitProcess(why string) {
	fmt.Fprintln(os.Stderr, "handler process ends:", why)
	os.Exit(exitAbandoned)
}
