package runtime_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// poisonous is the payload of a job that kills the process it is in.
const poisonous = `"poison"`

func poison(s *job.Submission) { s.Payload = []byte(poisonous) }

// suspected makes jobs suspects before anybody has claimed them.
func suspected(t *testing.T, db *database) {
	t.Helper()
	_, err := db.pool.Exec(t.Context(), "update jobs set crashes = 1")
	require.NoError(t, err)
}

// inOneProcess plays so many attempts that run beside each other until all of them
// have begun. Then the process dies. Those that run alone succeed, but for a
// poisonous one.
func inOneProcess(n int) script {
	var begun sync.WaitGroup
	begun.Add(n)
	died := job.Outcome{Kind: job.Crash, Message: "signal: killed"}
	return func(r *run) job.Outcome {
		switch {
		case r.Isolated && string(r.Payload) == poisonous:
			return died
		case r.Isolated:
			return job.Outcome{Kind: job.Success}
		}
		begun.Done()
		begun.Wait()
		together := died
		together.CoResidents = n - 1
		return together
	}
}

func TestCoResidentsOfACrashRunIsolatedUntilClearedOrFoundGuilty(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	innocent := many(t, db, 4)
	guilty := given(t, db, poison)
	s := supervise(t, playing("p", 5, inOneProcess(5), echo))
	launch(t, db, s)
	awaitState(t, db, guilty, job.Dead)
	awaitAll(t, db, len(innocent), job.Succeeded)
	for _, id := range innocent {
		require.Equal(t, []job.OutcomeKind{job.Suspect, job.Success}, outcomes(t, db, id))
		require.Equal(t, 1, charged(t, db, id))
	}
	ended := attempts(t, db, guilty)
	require.Equal(t, []job.OutcomeKind{job.Suspect, job.Crash, job.Crash}, outcomes(t, db, guilty))
	require.Equal(t, "its handler's process died with 4 other attempts in it: signal: killed", ended[0].Error)
	require.Equal(t, "its handler's process died 3 times under it, the last time alone: signal: killed", ended[2].Error)
	require.Equal(t, 2, charged(t, db, guilty))
	for i, r := range s.started() {
		require.Equal(t, i >= 5, r.Isolated, "run %d", i)
	}
	require.Equal(t, 1, s.plugins[0].mostAlone, "as many as there is room for")
	requireSettled(t, db)
}

func TestOthersDoNotWaitBehindSuspects(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	suspects := many(t, db, 10)
	suspected(t, db)
	release := make(chan struct{})
	s := supervise(t, playing("p", 2, func(r *run) job.Outcome {
		if r.Isolated {
			return until(release)(r)
		}
		return succeeds(r)
	}, echo))
	launch(t, db, s, leasing(aLongTime)) // whoever waits for longer than a lease is given back
	awaitAll(t, db, len(suspects), job.Running)
	many(t, db, 20)
	awaitAll(t, db, 20, job.Succeeded)
	await(t, func() bool {
		return ask[bool](t, db, "select min(now() - claimed_at) > interval '1.5 seconds' from leases")
	}, "the suspects are kept for longer than others that line up")
	close(release)
	awaitAll(t, db, 30, job.Succeeded)
	for _, id := range suspects {
		require.Equal(t, []job.OutcomeKind{job.Success}, outcomes(t, db, id))
	}
	requireSettled(t, db)
}

func TestSuspectsAboveTheLimitAreReleasedForAWhile(t *testing.T) {
	t.Parallel()
	const most = 750 // a claim
	db := fresh(t)
	many(t, db, most+20)
	suspected(t, db)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	launch(t, db, supervise(t, playing("p", 5, until(release), echo)), leasing(aLongTime))
	// One runs alone, and most wait.
	awaitAll(t, db, 19, job.Retry)
	awaitAll(t, db, most+1, job.Running)
	require.Equal(t, 19, ask[int](t, db, `select count(*) from job_attempts a join jobs using (job_id)
		where outcome = 'given_back' and error_code = 'no_process' and jobs.attempt = 0 and crashes = 1`))
	requireSound(t, db)
}

func TestSuspectsThatCannotRunIsolatedHereAreReleasedAfterALease(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	suspected(t, db)
	s := supervise(t, playing("p", 5, succeeds, echo))
	s.plugins[0].processes = 0
	launch(t, db, s, leasing(6*time.Second))
	awaitState(t, db, id, job.Retry)
	s.mu.Lock()
	require.Empty(t, s.runs)
	s.plugins[0].processes = 1
	s.mu.Unlock()
	awaitState(t, db, id, job.Succeeded)
	kinds := outcomes(t, db, id)
	require.Equal(t, job.Released, kinds[0])
	require.True(t, s.started()[0].Isolated)
	require.Equal(t, 1, charged(t, db, id))
	requireSettled(t, db)
}

func TestSuspectsWhoseProcessDoesNotStartAreTriedAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	suspected(t, db)
	never := ending(job.Outcome{Kind: job.Released, Code: job.CodeNoProcess, Message: "no process of its own came up"})
	s := supervise(t, playing("p", 3, inTurn(never, never, succeeds), echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Released, job.Released, job.Success}, outcomes(t, db, id))
	ended := attempts(t, db, id)
	require.Greater(t, ended[1].ClaimedAt.Sub(ended[0].EndedAt), 700*time.Millisecond)
	require.Greater(t, ended[2].ClaimedAt.Sub(ended[1].EndedAt), 1400*time.Millisecond, "longer each time")
	for _, r := range s.started() {
		require.True(t, r.Isolated)
	}
	require.Equal(t, 1, charged(t, db, id))
}

func TestWaitingSuspectsAreReleasedAtTheDrain(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	many(t, db, 5)
	suspected(t, db)
	release := make(chan struct{})
	s := supervise(t, playing("p", 5, until(release), echo))
	p := launch(t, db, s)
	awaitRun(t, s, 1)
	awaitAll(t, db, 5, job.Running)
	p.drain()
	awaitAll(t, db, 4, job.Queued)
	close(release)
	p.awaitEnd(t)
	awaitAll(t, db, 1, job.Succeeded)
	require.Equal(t, 4, ask[int](t, db, "select count(*) from jobs where crashes = 1 and attempt = 0"))
	requireSettled(t, db)
}

func TestTheTimeOfASuspectBeginsWithItsProcess(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, lasting(50*time.Millisecond), atMost(1))
	suspected(t, db)
	s := supervise(t, playing("p", 2, func(r *run) job.Outcome {
		select {
		case <-r.stopped:
			return job.Outcome{Kind: job.Failure, Message: "stopped while its process was launched"}
		case <-time.After(250 * time.Millisecond):
		}
		r.Began()
		return stops(r)
	}, echo))
	s.plugins[0].launching = true
	launch(t, db, s, graceful(aLongTime))
	awaitState(t, db, id, job.Dead)
	require.Equal(t, []job.OutcomeKind{job.Timeout}, outcomes(t, db, id))
	require.True(t, s.started()[0].Isolated)
}

func TestWaitingSuspectsRunWhileThePluginIsDown(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	suspects := many(t, db, 5)
	suspected(t, db)
	release := make(chan struct{})
	s := supervise(t, playing("p", 5, until(release), echo))
	launch(t, db, s)
	awaitRun(t, s, 1)
	awaitAll(t, db, 5, job.Running)
	s.turn(t, true)
	later := given(t, db)
	s.turn(t, true)
	close(release)
	awaitAll(t, db, 5, job.Succeeded)
	for _, id := range suspects {
		require.Equal(t, []job.OutcomeKind{job.Success}, outcomes(t, db, id), "nothing was given back")
	}
	require.Equal(t, 1, ask[int](t, db, "select count(*) from ready"), "nothing is claimed for it")
	s.turn(t, false)
	awaitState(t, db, later, job.Succeeded)
	requireSettled(t, db)
}
