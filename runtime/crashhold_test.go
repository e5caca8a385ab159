package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func expiring(c *runtime.Config) { c.CrashPolicy = runtime.Expire }

// crashes is a handler whose process dies at once.
func crashes(*run) job.Outcome { return job.Outcome{Kind: job.Crash, Message: "signal: killed"} }

func TestACrashHoldDelaysOnlyItsOwnJob(t *testing.T) {
	t.Parallel()
	const lease = 16 * time.Second
	db := fresh(t)
	unlucky := given(t, db, func(s *job.Submission) { s.Priority = 1 })
	other := given(t, db)
	s := supervise(t, playing("p", 1, inTurn(crashes, succeeds), echo))
	before := ask[time.Time](t, db, "select clock_timestamp()")
	launch(t, db, s, leasing(lease), expiring)
	awaitState(t, db, other, job.Succeeded)
	require.Equal(t, job.Running, view(t, db, unlucky).State)
	require.Empty(t, attempts(t, db, unlucky))
	awaitState(t, db, unlucky, job.Succeeded)
	ended := attempts(t, db, unlucky)
	require.Equal(t, []job.OutcomeKind{job.Crash, job.Success}, outcomes(t, db, unlucky), "its worker knows what happened")
	require.Contains(t, ended[0].Error, "signal: killed")
	// The worker counts from when it asked for the job, which may be long before it was claimed.
	require.GreaterOrEqual(t, ended[0].EndedAt.Sub(before), lease)
	requireSettled(t, db)
}

// An outage that is shorter than a lease costs nothing, also at the moment when the
// ends are to be written.
func TestAnOutageAtTheEndOfCrashHoldsChargesNobody(t *testing.T) {
	t.Parallel()
	const lease = 18 * time.Second
	db := fresh(t)
	p := pgtest.Between(t, db.url)
	ids := many(t, db, 3)
	s := supervise(t, playing("p", 3, func(r *run) job.Outcome {
		if r.Fence == 1 {
			return job.Outcome{Kind: job.Crash, Message: "signal: killed", CoResidents: 2}
		}
		return job.Outcome{Kind: job.Success}
	}, echo))
	launch(t, openAt(t, p.URL), s, leasing(lease), expiring)
	launch(t, db, supervise(t), leasing(lease)) // its reaper can take over what expires
	awaitRun(t, s, 3)
	began := ask[time.Time](t, db, "select min(at) from "+expiries)
	await(t, func() bool {
		return ask[bool](t, db, "select min(at) > $1::timestamptz + interval '9 s' from "+expiries, began)
	},
		"the leases are renewed twice, so that they outlast the outage by more than half of their time")
	p.Down.Store(true)
	p.Cut()
	await(t, func() bool {
		return ask[bool](t, db, "select clock_timestamp() > $1::timestamptz + interval '300 ms'", began)
	}, "the time of the ends passes")
	p.Down.Store(false)
	awaitAll(t, db, len(ids), job.Succeeded)
	for _, id := range ids {
		require.Equal(t, []job.OutcomeKind{job.Suspect, job.Success}, outcomes(t, db, id))
		require.Equal(t, 1, charged(t, db, id))
	}
	requireSettled(t, db)
}

func TestADrainDoesNotWaitForCrashHolds(t *testing.T) {
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

func TestAJobThatIsCanceledDuringItsCrashHoldIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t, playing("p", 1, inTurn(crashes, succeeds), echo))
	p := launch(t, db, s, leasing(6*time.Second), expiring)
	awaitRun(t, s, 1)
	_, err := db.Cancel(t.Context(), id)
	require.NoError(t, err)
	p.CancelAsked()
	awaitState(t, db, id, job.Canceled)
	require.Len(t, s.started(), 1)
	requireSettled(t, db)
}

func TestWithCrashPolicyReleaseACrashIsSettledAtOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	launch(t, db, supervise(t, playing("p", 1, inTurn(crashes, succeeds), echo)), leasing(aLongTime))
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Crash, job.Success}, outcomes(t, db, id))
}
