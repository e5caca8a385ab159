package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func sinceClaim(ms int) job.SinceClaim {
	return job.SinceClaim{Time: time.Duration(ms)*time.Millisecond + 400*time.Microsecond, Known: true}
}

// ago makes a job due some seconds ago.
func ago(seconds int) func(*job.Submission) {
	return func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Duration(seconds) * time.Second) }
}

// backdate moves the claim, as if the attempt had lasted for ten seconds.
func backdate(t testing.TB, s *Store, c *job.Claimed) {
	t.Helper()
	exec(t, s, "update leases set claimed_at = claimed_at - interval '10 seconds' where job_id = $1", postgres.UUID(c.JobID))
	c.ClaimedAt = c.ClaimedAt.Add(-10 * time.Second)
}

func TestEveryAttemptKnowsWhenItWasDueAndBeganHoweverItEnds(t *testing.T) {
	for _, kind := range job.OutcomeKinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := open(t)
			c := running(t, s, ago(60))
			backdate(t, s, &c)
			settlement := as(c, kind)
			settlement.Began, settlement.Done = sinceClaim(250), sinceClaim(2000)
			require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))

			attempts := detail(t, s, c.JobID).Attempts
			require.Len(t, attempts, 1)
			got := attempts[0]
			require.WithinDuration(t, c.RunAt, *got.DueAt, 0, "when it was due for this attempt, not for the next")
			require.WithinDuration(t, c.ClaimedAt.Add(250*time.Millisecond), *got.BeganAt, 0)
			if kind == job.Success {
				require.Nil(t, got.DoneAt)
				return
			}
			require.WithinDuration(t, c.ClaimedAt.Add(2*time.Second), *got.DoneAt, 0)
		})
	}
}

func TestAnAttemptThatWasNotStartedHasNotBegun(t *testing.T) {
	s := open(t)
	for _, kind := range []job.OutcomeKind{job.Success, job.Released, job.CancelConfirmed} {
		c := running(t, s, ago(60))
		settled(t, s, c, kind)
		got := detail(t, s, c.JobID).Attempts[0]
		require.WithinDuration(t, c.RunAt, *got.DueAt, 0)
		require.Nil(t, got.BeganAt)
		require.Nil(t, got.DoneAt)
		if kind == job.Released { // it would be claimed again
			_, err := s.Cancel(t.Context(), c.JobID)
			require.NoError(t, err)
		}
	}
}

func TestTheTimesOfAnAttemptLieWithinIt(t *testing.T) {
	s := open(t)
	for _, kind := range []job.OutcomeKind{job.Success, job.PermanentFailure} {
		c := running(t, s)
		settlement := as(c, kind)
		settlement.Began, settlement.Done = sinceClaim(60_000), job.SinceClaim{Time: 100 * 24 * time.Hour, Known: true}
		require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
		got := detail(t, s, c.JobID).Attempts[0]
		require.WithinDuration(t, got.EndedAt, *got.BeganAt, 0, "the clock of the worker is fast")
	}
}

func TestALeaseKnowsWhenTheHandlerBeganOnceItIsRenewed(t *testing.T) {
	s := open(t)
	c := running(t, s)
	require.Nil(t, detail(t, s, c.JobID).Lease.BeganAt)
	begun := c.Lease
	begun.Began = sinceClaim(30)
	renew(t, s, aMinute, begun)
	require.WithinDuration(t, c.ClaimedAt.Add(30*time.Millisecond), *detail(t, s, c.JobID).Lease.BeganAt, 0)

	expire(t, s, c.Lease)
	backdate(t, s, &c)
	taken := reap(t, s, 1)[0]
	settlement := as(c, job.LeaseExpired)
	settlement.Lease = taken.Lease
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
	got := detail(t, s, c.JobID).Attempts[0]
	require.WithinDuration(t, got.ClaimedAt.Add(30*time.Millisecond), *got.BeganAt, 0, "the reaper does not know, the lease does")
	require.WithinDuration(t, c.RunAt, *got.DueAt, 0)
}

func TestEachAttemptOfAJobHasItsOwnDueTime(t *testing.T) {
	s := open(t)
	c := running(t, s, ago(60))
	first := c.RunAt
	settled(t, s, c, job.Released)
	s.marks = newLowWaterMarks()
	c = claim(t, s, 1)[0]
	settled(t, s, c, job.Snoozed)
	promote(t, s, 10)
	s.marks = newLowWaterMarks()
	c = claim(t, s, 1)[0]
	third := c.RunAt
	settled(t, s, c, job.PermanentFailure)
	_, err := s.Requeue(t.Context(), c.JobID)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	c = claim(t, s, 1)[0]
	settled(t, s, c, job.Success)

	attempts := detail(t, s, c.JobID).Attempts
	require.Len(t, attempts, 4)
	require.WithinDuration(t, first, *attempts[0].DueAt, 0)
	require.WithinDuration(t, first, *attempts[1].DueAt, 0, "it kept its place")
	require.True(t, third.After(attempts[1].EndedAt.Add(-time.Millisecond)), "it was put off")
	require.WithinDuration(t, third, *attempts[2].DueAt, 0)
	require.WithinDuration(t, c.RunAt, *attempts[3].DueAt, 0)
	require.True(t, attempts[3].DueAt.After(attempts[2].EndedAt), "it was requeued")
}
