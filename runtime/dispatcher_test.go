package runtime_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ahead lets a worker claim for so long ahead.
func ahead(of time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.Prefetch = of }
}

func TestShortJobsArePrefetched(t *testing.T) {
	t.Parallel()
	const slots, jobs = 4, 2000
	db := fresh(t)
	many(t, db, jobs)
	var claims atomic.Int64
	ledger := &hooked{Store: db, claim: func([]string, int) { claims.Add(1) }}
	s := supervise(t, playing("p", slots, succeeds, echo))
	launch(t, ledger, s, ahead(time.Minute))
	awaitAll(t, db, jobs, job.Succeeded)
	require.Less(t, claims.Load(), int64(jobs/slots/4))
	require.LessOrEqual(t, s.plugins[0].mostBusy, slots)
	requireSettled(t, db)
}

// lineUp runs a worker with one slot, whose jobs pass quickly until the first
// that plays the other script is in it, with others of the kind behind it.
func lineUp(t *testing.T, db *database, blocks script, behind int) (*process, *supervisor, []job.ID) {
	t.Helper()
	many(t, db, 300)
	s := supervise(t, &handlers{name: "p", slots: 1, plays: map[string]script{echo: succeeds, "BLOCK": blocks}})
	urgent := func(s *job.Submission) { s.Priority = -1 }
	ids := many(t, db, 1+behind, ofType("BLOCK"), urgent)
	p := launch(t, db, s, ahead(time.Second), polling(aLongTime))
	awaitAll(t, db, 300, job.Succeeded)
	awaitAll(t, db, 1+behind, job.Running)
	await(t, func() bool { return len(s.started()) == 301 }, "the first that blocks runs")
	return p, s, ids
}

func TestPrefetchedJobsAreReleasedAtTheDrain(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	release := make(chan struct{})
	p, s, ids := lineUp(t, db, until(release), 5)
	p.drain()
	awaitAll(t, db, 5, job.Queued)
	close(release)
	p.awaitEnd(t)
	require.Len(t, s.started(), 301)
	running := s.started()[300].JobID
	for _, id := range ids {
		if id == running {
			require.Equal(t, []job.OutcomeKind{job.Success}, outcomes(t, db, id))
			continue
		}
		require.Equal(t, []job.OutcomeKind{job.Released}, outcomes(t, db, id))
		require.Zero(t, charged(t, db, id))
	}
	requireSettled(t, db)
}

func TestACanceledPrefetchedJobIsNotStarted(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	release := make(chan struct{})
	p, s, ids := lineUp(t, db, until(release), 2)
	running := s.started()[300].JobID
	waits := ids[slices.IndexFunc(ids, func(id job.ID) bool { return id != running })]
	_, err := db.Cancel(t.Context(), waits)
	require.NoError(t, err)
	p.CancelAsked()
	awaitState(t, db, waits, job.Canceled)
	close(release)
	awaitAll(t, db, 302, job.Succeeded)
	require.Len(t, s.started(), 302)
	requireSettled(t, db)
}

// Another claimer holds as many of the most urgent jobs as a small claim asks for. The
// jobs behind them are claimed anyway.
func TestJobsBehindThoseOfAnotherClaimerAreClaimed(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	first := given(t, db, ofType("B"))
	s := supervise(t, playing("p", 100, succeeds, "A", "B"))
	claims, ready := 0, make(chan struct{})
	p := launch(t, &hooked{
		Store:  db,
		listen: func() error { return errors.New("deaf") },
		claim: func([]string, int) {
			if claims++; claims > 1 {
				<-ready // The claimer looks again soon after its first claim.
			}
		},
	}, s, polling(aLongTime), func(c *runtime.Config) { c.Concurrency = 100 })
	awaitState(t, db, first, job.Succeeded) // one alone: the next claim asks for few
	many(t, db, 16, func(s *job.Submission) { s.Type, s.Priority = "A", 1 })
	many(t, db, 50, ofType("B"))
	locked, err := db.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = locked.Rollback(context.Background()) })
	_, err = locked.Exec(t.Context(), "select from ready where job_type = 'A' for update")
	require.NoError(t, err)
	close(ready)
	p.JobsReady()
	awaitAll(t, db, 51, job.Succeeded)
}

func TestPrefetchedJobsThatWaitLongAreReleased(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	_, s, _ := lineUp(t, db, until(release), 5)
	awaitAll(t, db, 5, job.Queued)
	require.Len(t, s.started(), 301)
}

func TestPrefetchedJobsOfAPluginThatGoesAreReleased(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	_, s, _ := lineUp(t, db, until(release), 5)
	s.mu.Lock()
	s.plugins = nil
	s.mu.Unlock()
	s.changed <- struct{}{}
	awaitAll(t, db, 5, job.Queued)
}

func TestLongJobsAreNotPrefetched(t *testing.T) {
	t.Parallel()
	const slots, jobs = 5, 30
	db := fresh(t)
	many(t, db, jobs)
	var most atomic.Int64
	ledger := &hooked{Store: db, claim: func(_ []string, limit int) { most.Store(max(most.Load(), int64(limit))) }}
	s := supervise(t, playing("p", slots, takes(60*time.Millisecond), echo))
	launch(t, ledger, s, ahead(50*time.Millisecond))
	awaitAll(t, db, jobs, job.Succeeded)
	require.LessOrEqual(t, most.Load(), int64(slots))
}

// Each of those before it ends in time; all of them together do not.
func TestNoPrefetchedJobWaitsLongerThanASecond(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	_, _, ids := lineUp(t, db, takes(300*time.Millisecond), 9)
	awaitAll(t, db, 310, job.Succeeded)
	givenBack := 0
	for _, id := range ids {
		ended := outcomes(t, db, id)
		require.LessOrEqual(t, len(ended), 2, "none is claimed again before there is a slot for it")
		givenBack += len(ended) - 1
	}
	require.Positive(t, givenBack)
}

// takes succeeds after a while.
func takes(long time.Duration) script {
	return func(r *run) job.Outcome {
		select {
		case <-time.After(long):
		case <-r.killed:
		}
		return job.Outcome{Kind: job.Success}
	}
}

func TestATypeWithABoundOfItsOwnDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	const slots, most = 6, 2
	db := fresh(t)
	many(t, db, 60, ofType("BOUND"), func(s *job.Submission) { s.Priority = 5 })
	many(t, db, 600)
	release := make(chan struct{})
	s := supervise(t, &handlers{
		name: "p", slots: slots, bounds: map[string]int{"BOUND": most},
		plays: map[string]script{echo: succeeds, "BOUND": until(release)},
	})
	launch(t, db, s, ahead(time.Second))
	awaitAll(t, db, 600, job.Succeeded)
	await(t, func() bool {
		return ask[int](t, db, "select count(*) from leases join jobs using (job_id) where job_type = 'BOUND'") == most
	})
	close(release)
	awaitAll(t, db, 660, job.Succeeded)
	requireSettled(t, db)
	require.Zero(t, ask[int](t, db, "select count(*) from unsuccessful_attempts"), "nothing was given back")
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Zero(t, s.plugins[0].refusedOf, "no more was claimed than there was room for")
	require.LessOrEqual(t, s.plugins[0].mostBusy, slots)
}
