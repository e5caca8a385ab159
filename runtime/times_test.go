package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheTimesOfEveryAttemptAreInOrder(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db, func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour) })
	s := supervise(t, playing("p", 1, inTurn(fails, ending(job.Outcome{Kind: job.Snoozed}), crashes, succeeds), echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Succeeded)

	all := attempts(t, db, id)
	require.GreaterOrEqual(t, len(all), 4)
	due := time.Time{}
	for _, a := range all {
		require.False(t, a.DueAt.Before(due), "the jobs of retries are due later")
		require.False(t, a.ClaimedAt.Before(*a.DueAt))
		require.False(t, a.BeganAt.Before(a.ClaimedAt))
		require.False(t, a.EndedAt.Before(*a.BeganAt))
		if a.Outcome != job.Success {
			require.False(t, a.DoneAt.Before(*a.BeganAt))
			require.False(t, a.EndedAt.Before(*a.DoneAt))
		}
		due = *a.DueAt
	}
	require.Greater(t, all[0].ClaimedAt.Sub(*all[0].DueAt), 59*time.Minute)
	require.Less(t, all[len(all)-1].EndedAt.Sub(*all[len(all)-1].DueAt), time.Minute, "the wait of the first was not its own")
}

func TestALostAttemptIsKnownToHaveBegunOnceItsLeaseWasRenewed(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t, playing("p", 1, stops, echo))
	launch(t, db, s, leasing(9*time.Second))
	awaitRun(t, s, 1)
	await(t, func() bool {
		found, err := db.Detail(t.Context(), id)
		require.NoError(t, err)
		return found.Lease != nil && found.Lease.BeganAt != nil
	}, "the lease is to know when the handler began")
}
