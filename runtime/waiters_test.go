package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// awaiting waits for the job to end, for up to the time, in a goroutine. It asks again when a
// busy machine takes longer than the store waits.
func awaiting(t testing.TB, p *process, id job.ID, atMost time.Duration) <-chan job.View {
	t.Helper()
	ended := make(chan job.View, 1)
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	t.Cleanup(cancel)
	go func() {
		view, err := p.Await(ctx, id)
		for refused(err) && ctx.Err() == nil {
			loop.Pause(ctx, 100*time.Millisecond)
			view, err = p.Await(ctx, id)
		}
		if err == nil {
			ended <- view
		}
	}()
	return ended
}

func deaf() error { return errors.New("deaf") }

// gated is a script that succeeds once the gate is opened, at the latest when
// the test ends.
func gated(t testing.TB) (open func(), play script) {
	t.Helper()
	gate := make(chan struct{})
	open = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return open, func(*run) job.Outcome {
		<-gate
		return job.Outcome{Kind: job.Success, Result: []byte(`{"n": 1}`)}
	}
}

func TestAWaiterIsWokenByTheSettlementInItsOwnProcess(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	open, play := gated(t)
	s := supervise(t, playing("p", 5, play, echo))
	// Neither polls nor hints can be what wakes it.
	p := launch(t, &hooked{Store: db, listen: deaf}, s, polling(aLongTime))
	receipt, err := p.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	first, second := awaiting(t, p, receipt.ID, aLongTime), awaiting(t, p, receipt.ID, aLongTime)
	awaitRun(t, s, 1)
	open()
	for _, waiter := range []<-chan job.View{first, second} {
		view := awaitSignal(t, waiter, "the end of the job")
		require.Equal(t, job.Succeeded, view.State)
		require.Equal(t, `{"n": 1}`, string(view.Result))
	}
}

func TestAWaiterIsWokenByTheSettlementInAnotherProcess(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	open, play := gated(t)
	s := supervise(t, playing("p", 5, play, echo))
	launch(t, db, s)
	front := launch(t, db, supervise(t), polling(aLongTime)) // serves nothing
	receipt, err := front.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	waiter := awaiting(t, front, receipt.ID, aLongTime)
	awaitRun(t, s, 1)
	open()
	require.Equal(t, job.Succeeded, awaitSignal(t, waiter, "the end of the job").State)
}

func TestAWaiterIsAnsweredByAPollWhenHintsAreLost(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	launch(t, db, supervise(t, playing("p", 5, succeeds, echo)))
	front := launch(t, &hooked{Store: db, listen: deaf}, supervise(t))
	id := given(t, db, func(s *job.Submission) { s.Delay = 50 * time.Millisecond })
	view := awaitSignal(t, awaiting(t, front, id, aLongTime), "the end of the job")
	require.Equal(t, job.Succeeded, view.State)
}

func TestAWaiterThatTimesOutGetsTheJobAsItIs(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t))
	id := given(t, db)
	view := awaitSignal(t, awaiting(t, p, id, 20*time.Millisecond), "the end of the wait")
	require.Equal(t, job.Queued, view.State)
}

func TestAWaitForAnUnknownOrEndedJobReturnsAtOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t, playing("p", 5, succeeds, echo)))
	_, err := p.Await(t.Context(), job.ID{15: 1})
	require.ErrorIs(t, err, job.ErrNotFound)
	id := given(t, db)
	awaitState(t, db, id, job.Succeeded)
	view, err := p.Await(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, job.Succeeded, view.State)

	left, leave := context.WithCancel(t.Context())
	leave()
	_, err = p.Await(left, given(t, db, func(s *job.Submission) { s.Hold = true }))
	require.ErrorIs(t, err, context.Canceled)
}

// However many wait, the database is asked for many of their jobs at once.
func TestManyWaitersShareOneQuery(t *testing.T) {
	t.Parallel()
	const jobs = 300
	db := fresh(t)
	var looks atomic.Int32
	ledger := &hooked{Store: db, called: func(_ context.Context, verb string) {
		if verb == "ended" {
			looks.Add(1)
		}
	}}
	open, play := gated(t)
	p := launch(t, ledger, supervise(t, playing("p", jobs, play, echo)), polling(aLongTime), func(c *runtime.Config) { c.Concurrency = jobs })
	var waiters []<-chan job.View
	for _, id := range many(t, db, jobs) {
		waiters = append(waiters, awaiting(t, p, id, aLongTime))
	}
	p.JobsReady()
	awaitAll(t, db, jobs, job.Running)
	open()
	for _, waiter := range waiters {
		require.Equal(t, job.Succeeded, awaitSignal(t, waiter, "the end of the job").State)
	}
	require.Less(t, looks.Load(), int32(jobs/2))
}
