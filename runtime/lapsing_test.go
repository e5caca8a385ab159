package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func expiring(c *runtime.Config) { c.AfterCrash = runtime.Expire }

// crashes is a handler whose process dies at once.
func crashes(*run) job.Outcome { return job.Outcome{Kind: job.Crash, Message: "signal: killed"} }

func TestTheLeaseOfADeadProcessRunsOutAndNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	db := fresh(t)
	unlucky := given(t, db, func(s *job.Submission) { s.Priority = 1 })
	other := given(t, db)
	s := supervise(t, playing("p", 1, inTurn(crashes, succeeds), echo))
	launch(t, db, s, leasing(lease), expiring)
	awaitState(t, db, other, job.Succeeded)
	require.Equal(t, job.Running, view(t, db, unlucky).State)
	require.Empty(t, attempts(t, db, unlucky))
	awaitState(t, db, unlucky, job.Succeeded)
	ended := attempts(t, db, unlucky)
	require.Equal(t, []job.OutcomeKind{job.Crash, job.Success}, outcomes(t, db, unlucky), "its worker knows what happened")
	require.Contains(t, ended[0].Error, "signal: killed")
	lasted := ended[0].EndedAt.Sub(ended[0].ClaimedAt)
	require.Greater(t, lasted, lease*8/10)
	require.LessOrEqual(t, lasted, lease, "before a reaper could take it over")
	requireSettled(t, db)
}

func TestADrainDoesNotWaitForLeasesToRunOut(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, atMost(1))
	s := supervise(t, playing("p", 1, crashes, echo))
	p := launch(t, db, s, leasing(aLongTime), expiring)
	awaitRun(t, s, 1)
	p.drain()
	p.awaitEnd(t)
	require.Equal(t, job.Dead, view(t, db, id).State)
	require.Equal(t, []job.OutcomeKind{job.Crash}, outcomes(t, db, id))
	require.True(t, signedOff(t, db, p))
	requireSettled(t, db)
}

func TestAJobThatIsCanceledWhileItsLeaseRunsOutIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t, playing("p", 1, inTurn(crashes, succeeds), echo))
	p := launch(t, db, s, leasing(2*time.Second), expiring)
	awaitRun(t, s, 1)
	_, err := db.Cancel(t.Context(), id)
	require.NoError(t, err)
	p.CancelAsked()
	awaitState(t, db, id, job.Canceled)
	require.Len(t, s.started(), 1)
	requireSettled(t, db)
}

func TestGivenBackTheLeaseOfADeadProcessEndsAtOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	launch(t, db, supervise(t, playing("p", 1, inTurn(crashes, succeeds), echo)), leasing(aLongTime))
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Crash, job.Success}, outcomes(t, db, id))
}
