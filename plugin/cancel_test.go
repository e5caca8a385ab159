package plugin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// stopping serves WAIT, whose handler reports that it runs, waits for its
// context's end and returns what the test says.
func stopping(t *testing.T) (o *orchestrator, returned *error, causes chan error) {
	t.Helper()
	returned, causes = new(error), make(chan error, 10)
	o = serving(t, Handle("WAIT", func(ctx context.Context, j Job[any]) error {
		if err := j.Progress("running"); err != nil {
			return err
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return *returned
	}))
	return o, returned, causes
}

func TestWhatACancelMakesOfAnAttempt(t *testing.T) {
	const (
		isCanceled  = "canceled"
		isTimeout   = "timeout"
		isSucceeded = "succeeded"
	)
	reasons := map[handlerv1.Cancel_Reason]struct {
		cause error
		want  string
	}{
		handlerv1.Cancel_REASON_CANCELED:   {ErrCanceled, isCanceled},
		handlerv1.Cancel_REASON_SHUTDOWN:   {ErrShutdown, isCanceled},
		handlerv1.Cancel_REASON_LEASE_LOST: {ErrLeaseLost, isCanceled},
		handlerv1.Cancel_REASON_TIMEOUT:    {ErrTimeout, isTimeout},
		handlerv1.Cancel_Reason(99):        {ErrCanceled, isCanceled},
	}
	o, returned, causes := stopping(t)
	for reason, c := range reasons {
		for name, err := range map[string]error{
			"nothing": nil, "the cause": c.cause, "an error": errPlain, "permanent": Permanent(errPlain), "snooze": Snooze(time.Hour),
		} {
			t.Run(c.cause.Error()+", "+name, func(t *testing.T) {
				*returned = err
				handle := o.start("WAIT", `null`)
				o.receive()
				o.cancel(handle, reason)
				o.cancel(handle, handlerv1.Cancel_REASON_SHUTDOWN) // only the first counts
				ended := o.outcome(handle)
				require.ErrorIs(t, <-causes, c.cause)
				got := "failed"
				switch {
				case ended.GetSucceeded() != nil:
					got = isSucceeded
				case ended.GetCanceled() != nil:
					got = isCanceled
				case ended.GetFailed().GetCode() == "timeout" && !ended.GetFailed().GetPermanent():
					got = isTimeout
				}
				want := c.want
				if err == nil {
					want = isSucceeded
				}
				require.Equal(t, want, got)
			})
		}
	}
}

func TestTheAttemptsOwnDeadlineIsATimeout(t *testing.T) {
	o, returned, causes := stopping(t)
	*returned = context.DeadlineExceeded
	s := o.newStart("WAIT", `null`)
	s.TimeoutMs = 20
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	require.Equal(t, "timeout", o.outcome(s.GetHandle()).GetFailed().GetCode())
	require.ErrorIs(t, <-causes, ErrTimeout)
}

// A cancel that nobody asked for would end the job, although the orchestrator
// may still own it.
func TestALeaseThatRunsOutIsAFailureThatMayBeRetried(t *testing.T) {
	o, returned, causes := stopping(t)
	*returned = Permanent(errPlain)
	s := o.newStart("WAIT", `null`)
	s.LeaseMs = 1200 // It is asked to stop 200 ms before that, on busy machines too.
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	got := o.outcome(s.GetHandle()).GetFailed()
	require.Equal(t, "lease_lost", got.GetCode())
	require.False(t, got.GetPermanent())
	require.ErrorIs(t, <-causes, ErrLeaseLost)
}

func TestAnAttemptThatHasEndedNeedsNoLease(t *testing.T) {
	o := serving(t,
		Handle("NOTHING", nothing),
		Handle("WAIT", func(ctx context.Context, _ Job[any]) error { <-ctx.Done(); return nil }))
	ended, later := o.newStart("NOTHING", `null`), o.newStart("WAIT", `null`)
	ended.LeaseMs, later.TimeoutMs = 50, 200
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{ended, later}})
	require.NotNil(t, o.outcome(ended.GetHandle()).GetSucceeded())
	require.NotNil(t, o.outcome(later.GetHandle()).GetSucceeded(), "it has waited for longer than that")
	require.Empty(t, o.exited)
}

func TestOtherHandlesAreOfNoConcern(t *testing.T) {
	o, _, _ := stopping(t)
	o.cancel(77, handlerv1.Cancel_REASON_CANCELED)
	o.send(&handlerv1.WorkRequest{Extension: &handlerv1.Extension{Handles: []uint64{78}, LeaseMs: 1}})
	handle := o.start("WAIT", `null`)
	o.cancel(handle, handlerv1.Cancel_REASON_CANCELED)
	require.NotNil(t, o.outcome(handle).GetSucceeded())
}

func TestADrainedProcessFinishesWhatItHas(t *testing.T) {
	o, returned, _ := stopping(t)
	*returned = errors.New("stopped")
	first, second, third := o.start("WAIT", `null`), o.start("WAIT", `null`), o.newStart("WAIT", `null`)
	third.LeaseMs = 200
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{third}, Drain: true})

	// It still listens: leases are extended and attempts canceled.
	o.send(&handlerv1.WorkRequest{Extension: &handlerv1.Extension{Handles: []uint64{third.GetHandle()}, LeaseMs: 3_600_000}})
	o.cancel(first, handlerv1.Cancel_REASON_CANCELED)
	require.NotNil(t, o.outcome(first).GetCanceled())
	requireNoEnd(t, o)
	o.cancel(second, handlerv1.Cancel_REASON_SHUTDOWN)
	require.NotNil(t, o.outcome(second).GetCanceled())
	o.cancel(third.GetHandle(), handlerv1.Cancel_REASON_TIMEOUT)
	require.Equal(t, "timeout", o.outcome(third.GetHandle()).GetFailed().GetCode(), "not lease_lost")
	require.NoError(t, o.end())
	<-o.drained
}

func TestAnIdleProcessDrainsAtOnce(t *testing.T) {
	o, _, _ := stopping(t)
	o.send(&handlerv1.WorkRequest{Drain: true})
	require.NoError(t, o.end())
	<-o.drained
}

func TestTheEndOfTheRequestsIsADrain(t *testing.T) {
	o, _, _ := stopping(t)
	s := o.newStart("WAIT", `null`)
	s.TimeoutMs = 50
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	require.NoError(t, o.stream.CloseSend())
	require.NotNil(t, o.outcome(s.GetHandle()).GetSucceeded())
	require.NoError(t, o.end())
}
