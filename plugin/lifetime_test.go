package plugin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// living is an attempt whose time is a minute, and whose handler does not run.
func living() *attempt {
	a := &attempt{start: &handlerv1.Start{JobId: "job-1"}, session: newSession(nil, limitsOf(nil), nil)}
	a.lifetime.of, a.lifetime.deadline = a, time.Now().Add(time.Minute)
	return a
}

func TestAContextThatIsAskedForLateHasEndedAsOneAskedForAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		happens    func(a *attempt)
		err, cause error
	}{
		"nothing":             {func(*attempt) {}, nil, nil},
		"end":                 {func(a *attempt) { a.lifetime.end(nil) }, context.Canceled, context.Canceled},
		"end, timeout":        {func(a *attempt) { a.lifetime.end(nil); time.Sleep(time.Hour) }, context.Canceled, context.Canceled},
		"timeout":             {func(*attempt) { time.Sleep(time.Minute) }, context.DeadlineExceeded, ErrTimeout},
		"timeout, end":        {func(a *attempt) { time.Sleep(2 * time.Minute); a.lifetime.end(nil) }, context.DeadlineExceeded, ErrTimeout},
		"cancel, timeout":     {func(a *attempt) { a.stop(ErrCanceled); time.Sleep(time.Hour) }, context.Canceled, ErrCanceled},
		"cancel, lost stream": {func(a *attempt) { a.stop(ErrCanceled); a.session.lose(ErrLeaseLost) }, context.Canceled, ErrCanceled},
		"cancel, shutdown":    {func(a *attempt) { a.stop(ErrCanceled); a.stop(ErrShutdown) }, context.Canceled, ErrCanceled},
		"lost stream, end":    {func(a *attempt) { a.session.lose(ErrLeaseLost); a.lifetime.end(nil) }, context.Canceled, ErrLeaseLost},
		"lost stream":         {func(a *attempt) { a.session.lose(ErrLeaseLost) }, context.Canceled, ErrLeaseLost},
		"asked to time out":   {func(a *attempt) { a.stop(ErrTimeout) }, context.Canceled, ErrTimeout},
	} {
		for _, asked := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				a := living()
				if asked {
					a.lifetime.Done()
				}
				c.happens(a)
				synctest.Wait()
				require.Equal(t, asked, a.lifetime.made != nil, name)
				require.Equal(t, c.err, a.lifetime.Err(), name)
				require.Equal(t, c.cause, context.Cause(&a.lifetime), name)
				a.lifetime.end(nil) // it may have a timer
			})
		}
	}
}

func TestContextsBelowAnAttemptsEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living()
		below, cancel := context.WithTimeout(&a.lifetime, time.Hour)
		defer cancel()
		deadline, ok := below.Deadline()
		require.True(t, ok)
		require.Equal(t, a.lifetime.deadline, deadline)
		called := false
		context.AfterFunc(below, func() { called = true })
		synctest.Wait()
		require.False(t, called)
		a.stop(ErrShutdown)
		require.Equal(t, context.Canceled, below.Err(), "at once: no goroutine waits for the attempt's context to end it")
		synctest.Wait()
		require.True(t, called)
		require.Equal(t, ErrShutdown, context.Cause(below))
	})
}

func TestAHandlerThatDoesNotAskForAContextGetsNone(t *testing.T) {
	a := living()
	ctx := context.Context(&a.lifetime)
	require.Same(t, a, current(ctx))
	_, ok := ctx.Deadline()
	require.True(t, ok)
	require.Equal(t, "context of job job-1", ctx.(interface{ String() string }).String())
	a.lifetime.end(nil)
	require.Nil(t, a.lifetime.made)
}
