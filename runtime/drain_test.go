package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func draining(period time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.DrainTimeout = period }
}

func signedOff(t *testing.T, db *database, p *process) bool {
	t.Helper()
	return ask[bool](t, db, "select stopped_at is not null from workers where worker_id = $1", p.worker.ID)
}

func TestADrainLetsRunningHandlersFinishAndClaimsNothingMore(t *testing.T) {
	db := fresh(t)
	db.openConnections(t)
	present := goleak.IgnoreCurrent()
	id := given(t, db)
	done := make(chan struct{})
	s := supervise(t, playing("p", 1, until(done), echo))
	p := launch(t, db, s, leasing(6*time.Second))
	r := awaitRun(t, s, 1)
	p.drain()

	late := given(t, db)
	p.JobsReady()
	renewals := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.extended
	}
	before := renewals()
	await(t, func() bool { return renewals() >= before+4 }, "leases are renewed all the while")
	close(done)
	p.awaitEnd(t)
	require.Equal(t, job.Succeeded, view(t, db, id).State)
	require.Equal(t, job.Queued, view(t, db, late).State)
	require.Empty(t, r.told())
	require.True(t, signedOff(t, db, p))
	requireSettled(t, db)
	require.NoError(t, goleak.Find(present))
}

func TestHandlersThatExceedTheDrainTimeoutAreReleasedUncharged(t *testing.T) {
	for name, play := range map[string]script{"stops when asked": stops, "has to be killed": clings} {
		t.Run(name, func(t *testing.T) {
			db := fresh(t)
			db.openConnections(t)
			present := goleak.IgnoreCurrent()
			ids := many(t, db, 3)
			s := supervise(t, playing("p", 5, play, echo))
			p := launch(t, db, s, draining(50*time.Millisecond))
			awaitRun(t, s, 3)
			p.drain()
			p.awaitEnd(t)
			for _, r := range s.started() {
				require.Equal(t, []job.CancelReason{job.CancelShutdown}, r.told())
				require.Equal(t, name == "has to be killed", r.wasKilled())
			}
			for _, id := range ids {
				require.Equal(t, job.Queued, view(t, db, id).State)
				require.Equal(t, []job.OutcomeKind{job.Released}, outcomes(t, db, id))
				require.Zero(t, charged(t, db, id))
			}
			require.True(t, signedOff(t, db, p))
			requireSettled(t, db)
			require.NoError(t, goleak.Find(present))

			next := supervise(t, playing("p", 5, succeeds, echo))
			launch(t, db, next)
			awaitAll(t, db, len(ids), job.Succeeded)
			for _, r := range next.started() {
				require.Equal(t, 1, r.Attempt)
			}
		})
	}
}

func TestAnAbortEndsTheWorkerAtOnceAndItsJobsAreRecovered(t *testing.T) {
	db := fresh(t)
	db.openConnections(t)
	present := goleak.IgnoreCurrent()
	id := given(t, db)
	// Handlers that outlive their supervisor's patience, as for a while they may.
	s := supervise(t, playing("p", 1, clings, echo))
	p := launch(t, db, s, leasing(2*time.Second), graceful(aLongTime))
	r := awaitRun(t, s, 1)
	p.drain()
	p.abort()
	p.awaitEnd(t)
	require.Equal(t, []job.CancelReason{job.CancelShutdown}, r.told())
	require.False(t, signedOff(t, db, p), "its handler may still run")
	require.Equal(t, job.Running, view(t, db, id).State)
	r.Kill()
	s.all.Wait()
	require.NoError(t, goleak.Find(present))

	launch(t, db, supervise(t, playing("p", 1, succeeds, echo)), leasing(3*time.Second))
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Interrupted, job.Success}, outcomes(t, db, id))
	require.Equal(t, 1, charged(t, db, id))
}

// A worker that signs off says that its handlers have ended.
func TestAWorkerWhoseHandlerDoesNotEndDoesNotSignOff(t *testing.T) {
	if testing.Short() {
		t.Skip("waits out the last deadline of a shutdown")
	}
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	done, end := context.WithCancel(t.Context())
	undying := func(*run) job.Outcome {
		<-done.Done()
		return job.Outcome{Kind: job.Success}
	}
	s := supervise(t, playing("p", 1, undying, echo))
	p := launch(t, db, s, draining(0), leasing(aLongTime))
	r := awaitRun(t, s, 1)
	p.drain()
	p.awaitEnd(t)
	require.True(t, r.wasKilled())
	require.False(t, signedOff(t, db, p))
	require.True(t, ask[bool](t, db, "select at > now() from "+expiries+" where job_id = $1", uuid(id)))
	end()
	s.all.Wait()
}

// neverSettles is a database that answers everything but settlements.
type neverSettles struct {
	runtime.Store
	tried chan struct{}
}

func (n neverSettles) Settle(context.Context, []job.Settlement) ([]job.SettleResult, error) {
	select {
	case n.tried <- struct{}{}:
	default:
	}
	return nil, job.ErrUnavailable
}

// What a reaper has taken over is nobody's holding, and must not keep the
// worker from ending.
func TestAWorkerEndsEvenIfASettlementIsNotAccepted(t *testing.T) {
	for name, end := range map[string]func(*process){
		"at once":        func(p *process) { p.drain(); p.abort() },
		"after one more": func(p *process) { p.drain() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "at once" && testing.Short() {
				t.Skip("waits for as long as one try may take")
			}
			db := fresh(t)
			given(t, db)
			expired, err := db.Claim(t.Context(), "somebody/gone", []string{echo}, 1, time.Microsecond)
			require.NoError(t, err)
			require.Len(t, expired, 1)
			ledger := neverSettles{Store: db, tried: make(chan struct{}, 1)}
			p := launch(t, ledger, supervise(t))
			awaitSignal(t, ledger.tried, "the reaper settles")
			end(p)
			p.awaitEnd(t)
		})
	}
}
