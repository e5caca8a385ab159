package runtime_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// enlisted makes a worker known that nothing runs for.
func enlisted(t *testing.T, db *database, aliveFor time.Duration, change func(*job.Worker)) job.Worker {
	t.Helper()
	w := runtime.NewWorker("other", job.AllRoles())
	change(&w)
	require.NoError(t, db.RegisterWorker(t.Context(), w, aliveFor))
	return w
}

// holding lets the worker claim the next job.
func holding(t *testing.T, db *database, w job.Worker, lease time.Duration) job.Claimed {
	t.Helper()
	claimed, err := db.Claim(t.Context(), w.ID, []string{echo}, 1, lease)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	return claimed[0]
}

func processDied(w *job.Worker) { w.PIDStarted-- } // the process id is another's now

func elsewhere(w *job.Worker) { w.Host = "another host" }

func unchanged(*job.Worker) {}

func TestOnlyJobsOfADeadProcessAreRecoveredAtOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	ids := many(t, db, 3)
	lost := holding(t, db, enlisted(t, db, aLongTime, processDied), aLongTime)
	neighbours := holding(t, db, enlisted(t, db, aLongTime, unchanged), aLongTime)
	foreign := holding(t, db, enlisted(t, db, aLongTime, func(w *job.Worker) { processDied(w); elsewhere(w) }), aLongTime)
	require.ElementsMatch(t, ids, []job.ID{lost.JobID, neighbours.JobID, foreign.JobID})

	s := supervise(t, playing("p", 5, succeeds, echo))
	launch(t, db, s, leasing(6*time.Second))
	awaitState(t, db, lost.JobID, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Interrupted, job.Success}, outcomes(t, db, lost.JobID))
	require.Equal(t, 1, charged(t, db, lost.JobID))
	for _, held := range []job.Claimed{neighbours, foreign} {
		require.Equal(t, job.Running, view(t, db, held.JobID).State)
		require.Equal(t, held.ID.String(), ask[string](t, db,
			"select lease_id::text from "+expiries+" where job_id = $1 and at > now()", uuid(held.JobID)))
	}
	require.Len(t, s.started(), 1)
	requireSound(t, db)
}

func TestASilentWorkerCostsNoAttemptUntilItHappensTooOften(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, atMost(2))
	launch(t, db, supervise(t), leasing(300*time.Millisecond)) // nobody here runs the job
	var want []job.OutcomeKind
	for range job.MaxInterruptions + 2 {
		awaitState(t, db, id, job.Queued)
		holding(t, db, enlisted(t, db, 30*time.Millisecond, elsewhere), 30*time.Millisecond)
		want = append(want, job.Interrupted)
		await(t, func() bool { return len(outcomes(t, db, id)) == len(want) }, "the loss is to be noticed")
		require.Equal(t, max(0, len(want)-job.MaxInterruptions), charged(t, db, id))
	}
	require.Equal(t, job.Dead, view(t, db, id).State)
	require.Equal(t, want, outcomes(t, db, id))
	require.Equal(t, job.MaxInterruptions, ask[int](t, db, "select interruptions from jobs"))
	requireSettled(t, db)
}

func TestAnExpiredLeaseOfALiveWorkerIsCharged(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	holding(t, db, enlisted(t, db, aLongTime, elsewhere), time.Millisecond)
	launch(t, db, supervise(t, playing("p", 1, succeeds, echo)), leasing(6*time.Second))
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.LeaseExpired, job.Success}, outcomes(t, db, id))
	require.Equal(t, 2, charged(t, db, id))
}

func TestAJobToBeCanceledIsNotRetriedWhenItsOwnerIsGone(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	holding(t, db, enlisted(t, db, aLongTime, processDied), aLongTime)
	_, err := db.Cancel(t.Context(), id)
	require.NoError(t, err)
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Canceled)
	require.Empty(t, s.started())
	requireSettled(t, db)
}

// More expired leases than one take-over holds, among live ones.
func TestAnyNumberOfExpiredLeasesIsRecovered(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const jobs, live = 700, 300
	many(t, db, jobs+live)
	claim := func(w job.Worker, n int, lease time.Duration) {
		claimed, err := db.Claim(t.Context(), w.ID, []string{echo}, n, lease)
		require.NoError(t, err)
		require.Len(t, claimed, n)
	}
	claim(enlisted(t, db, aLongTime, elsewhere), live, aLongTime)
	claim(enlisted(t, db, aLongTime, processDied), jobs, aLongTime)
	launch(t, db, supervise(t, playing("p", 50, succeeds, echo)))
	awaitAll(t, db, jobs, job.Succeeded)
	require.Equal(t, live, ask[int](t, db, "select count(*) from "+expiries+" where at > now()"))
	require.Equal(t, jobs, ask[int](t, db, "select count(*) from current_jobs where attempt = 1 and interruptions = 1"))
}

// A worker that comes back from a long pause cannot know that its leases were
// taken over; the database does.
func TestAWorkerChangesNothingAfterItsLeasesWereTakenOver(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	asleep := holding(t, db, enlisted(t, db, time.Millisecond, elsewhere), time.Millisecond)
	launch(t, db, supervise(t, playing("p", 1, ending(job.Outcome{Kind: job.Success, Result: []byte(`"new"`)}), echo)))
	awaitState(t, db, id, job.Succeeded)
	ctx := context.WithoutCancel(t.Context())
	fates, err := db.Settle(ctx, []job.Settlement{{
		Lease: asleep.Lease, Number: 1, Result: []byte(`"old"`),
		Decision: job.Decision{To: job.Succeeded, Kind: job.Success, Attempt: 1},
	}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Lost}, fates)
	require.JSONEq(t, `"new"`, string(view(t, db, id).Result))
}

// A worker that ended while its lease ran out: the reaper must not have it yet when the leases of
// that worker are expired, as it would have to take it over twice.
func TestALeaseThatRanOutWhenItsWorkerEndedIsTakenOverOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	holding(t, db, enlisted(t, db, aLongTime, processDied), time.Millisecond)
	measured, counts := metered(t)
	var mu sync.Mutex
	var order []string
	store := &hooked{Store: db, called: func(_ context.Context, verb string) {
		if verb == "expire workers" || verb == "reap" {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, verb)
		}
	}}
	launch(t, store, supervise(t, playing("p", 1, succeeds, echo)), measured)
	awaitState(t, db, id, job.Succeeded)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"expire workers", "reap"}, order[:2])
	require.Equal(t, map[string]int64{"lease_expired": 0, "worker_gone": 1}, counts.of("holdfast.jobs.reaped"))
}

// The reaper's process is held up, and another takes over what it has taken over.
func TestAnAttemptThatIsTakenOverTwiceIsToldOfOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	holding(t, db, enlisted(t, db, aLongTime, processDied), aLongTime)
	measured, counts := metered(t)
	var once sync.Once
	store := &hooked{Store: db, settle: func([]job.Settlement) {
		once.Do(func() {
			_, err := db.pool.Exec(context.Background(), "update leases set lease_id = gen_random_uuid(), expires_at = now()")
			assert.NoError(t, err)
		})
	}}
	var written bytes.Buffer
	p := launch(t, store, supervise(t, playing("p", 1, succeeds, echo)), measured, leasing(600*time.Millisecond), func(c *runtime.Config) {
		c.Log = slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Interrupted, job.Success}, outcomes(t, db, id))
	require.Zero(t, counts.of("holdfast.lease.losses")["settle"])
	p.drain()
	p.awaitEnd(t)
	require.NotContains(t, written.String(), "attempt ended too late")
	require.Contains(t, written.String(), "another process ends the attempt")
	requireSound(t, db)
}
