package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func lasting(timeout time.Duration) func(*job.Submission) {
	return func(s *job.Submission) { s.Timeout = timeout }
}

func TestAHandlerThatIgnoresItsTimeoutIsKilledBeforeTheJobIsRetried(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, lasting(50*time.Millisecond))
	s := supervise(t, playing("p", 2, inTurn(clings, succeeds), echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Succeeded)

	first := s.started()[0]
	require.Equal(t, []job.CancelReason{job.CancelTimeout}, first.told())
	require.True(t, first.wasKilled())
	require.Equal(t, []job.OutcomeKind{job.Timeout, job.Success}, outcomes(t, db, id))
	timedOut := attempts(t, db, id)[0]
	require.Contains(t, timedOut.Error, "50ms")
	require.Equal(t, job.CodeTimeout, timedOut.Code)
	lived := timedOut.EndedAt.Sub(timedOut.ClaimedAt)
	require.GreaterOrEqual(t, lived, 150*time.Millisecond, "its time and the grace")
	require.Equal(t, 2, charged(t, db, id))
	require.Equal(t, []bool{false, true}, []bool{first.Isolated, s.started()[1].Isolated}, "it takes no others along again")
	require.Zero(t, ask[int](t, db, "select crashes from jobs"), "cleared")
	requireSettled(t, db)
}

// Others are in the process, and one of them may be to blame.
func TestAProcessThatDiesByItselfAfterATimeoutHasCrashed(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, lasting(50*time.Millisecond))
	s := supervise(t, playing("p", 2, inTurn(func(r *run) job.Outcome {
		<-r.stopped
		return job.Outcome{Kind: job.Crash, Message: "signal: segmentation fault", CoResidents: 1}
	}, succeeds), echo))
	launch(t, db, s, graceful(aLongTime))
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Suspect, job.Success}, outcomes(t, db, id))
	require.Contains(t, attempts(t, db, id)[0].Error, "segmentation fault")
	require.True(t, s.started()[1].Isolated)
	require.Equal(t, 1, charged(t, db, id))
}

func TestAHandlerThatStopsAtItsTimeoutIsNotKilled(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, lasting(50*time.Millisecond), atMost(2))
	s := supervise(t, playing("p", 2, stops, echo))
	launch(t, db, s, graceful(aLongTime))
	awaitState(t, db, id, job.Dead)
	require.Equal(t, []job.OutcomeKind{job.Timeout, job.Timeout}, outcomes(t, db, id))
	for _, r := range s.started() {
		require.Equal(t, []job.CancelReason{job.CancelTimeout}, r.told())
		require.False(t, r.wasKilled())
	}
}

func TestAHandlerThatEndsInTimeIsNeverStopped(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	// The second job outlives the timeout of the first, whose timer would fire.
	quick := given(t, db, lasting(time.Second))
	s := supervise(t, playing("p", 2, inTurn(succeeds, stops), echo))
	launch(t, db, s)
	awaitState(t, db, quick, job.Succeeded)
	slow := given(t, db, lasting(1500*time.Millisecond), atMost(1))
	awaitState(t, db, slow, job.Dead)
	require.Empty(t, s.started()[0].told())
	require.False(t, s.started()[0].wasKilled())
}

func TestACrashNotCausedByAKillStaysACrash(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, atMost(3))
	s := supervise(t, playing("p", 2, ending(job.Outcome{Kind: job.Crash, Code: "crashed"}), echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Dead)
	require.Equal(t, []job.OutcomeKind{job.Crash, job.Crash, job.Crash}, outcomes(t, db, id), "a poison job is charged each time")
}
