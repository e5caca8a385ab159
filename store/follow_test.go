package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

func followed(s *job.Submission) { s.Followed = true }

func follow1(t testing.TB, s *Store) job.Following {
	t.Helper()
	done, err := s.Follow(t.Context(), job.FollowPlan{})
	require.NoError(t, err)
	return done
}

// ends is the inbox: jobs and the states in which they have ended.
func ends(t testing.TB, s *Store) int { t.Helper(); return ask[int](t, s, "select count(*) from ends") }

func TestWhateverEndsAFollowedJobTellsTheFollower(t *testing.T) {
	s := open(t)
	ending := func(kind job.OutcomeKind) func(*testing.T, ...func(*job.Submission)) job.ID {
		return func(t *testing.T, changes ...func(*job.Submission)) job.ID {
			c := running(t, s, append(changes, func(j *job.Submission) { j.MaxAttempts = 1 })...)
			settled(t, s, c, kind)
			return c.JobID
		}
	}
	cancel := func(t *testing.T, changes ...func(*job.Submission)) job.ID {
		id := given(t, s, changes...)
		_, err := s.Cancel(t.Context(), id)
		require.NoError(t, err)
		return id
	}
	for name, c := range map[string]struct {
		end   func(*testing.T, ...func(*job.Submission)) job.ID
		state job.State
	}{
		"success":   {ending(job.Success), job.Succeeded},
		"death":     {ending(job.PermanentFailure), job.Dead},
		"confirmed": {ending(job.CancelConfirmed), job.Canceled},
		"canceled":  {cancel, job.Canceled},
		"expiry": {func(t *testing.T, changes ...func(*job.Submission)) job.ID {
			id := given(t, s, changes...)
			lapse(t, s, 0, id)
			expireJobs(t, s, 10)
			return id
		}, job.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			c.end(t)
			require.Zero(t, ends(t, s), "a job that nobody follows")
			id := c.end(t, followed, func(j *job.Submission) { j.Tenant = "acme" })
			require.Equal(t, 1, ends(t, s))
			at := *get(t, s, id).FinishedAt
			done := follow1(t, s)
			require.Len(t, done.Ended, 1)
			require.True(t, at.Equal(done.Ended[0].At))
			done.Ended[0].At = at
			require.Equal(t, []job.Ended{{ID: id, Type: jobType, Tenant: "acme", State: c.state, At: at, Tags: []string{}}}, done.Ended)
			require.Empty(t, follow1(t, s).Ended)
			requireSound(t, s)
		})
	}
}

func TestJobsThatGatesCancelTellTheFollower(t *testing.T) {
	for _, conflict := range []job.OnConflict{job.ConflictCancelNewcomer, job.ConflictCancelOldest} {
		t.Run(string(conflict), func(t *testing.T) {
			s := open(t)
			shared := func(j *job.Submission) {
				j.Terms = job.Terms{ConcurrencyKey: "k", ConcurrencyLimit: 1, OnConflict: conflict}
				j.Gates = (*job.Rules)(nil).Gates(j.Type, j.Tenant, j.Terms)
			}
			for range 2 {
				given(t, s, shared, followed)
				_, err := s.Admit(t.Context(), nil)
				require.NoError(t, err)
			}
			require.Equal(t, 1, ask[int](t, s, "select count(*) from jobs where state = 'canceled'"))
			done := follow1(t, s)
			require.Len(t, done.Ended, 1)
			require.Equal(t, job.Canceled, done.Ended[0].State)
		})
	}
}

func TestARetryTellsNobody(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, followed), job.Failure)
	require.Zero(t, ends(t, s))
}

func TestEveryEndOfARequeuedJobIsFollowedUpInOrder(t *testing.T) {
	s := open(t)
	c := running(t, s, followed)
	settled(t, s, c, job.PermanentFailure)
	_, err := s.Requeue(t.Context(), c.JobID)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	settled(t, s, claim(t, s, 1)[0], job.Success)
	done := follow1(t, s)
	require.Len(t, done.Ended, 2)
	require.Equal(t, job.Dead, done.Ended[0].State)
	require.Equal(t, job.Succeeded, done.Ended[1].State)
}

func TestRoundsOfTheFollowerTakeTurns(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, followed), job.Success)
	commit := locked(t, s, sql.Text("lock_following"))
	wait := after(func() job.Following { return follow1(t, s) })
	awaitBlocked(t, s, 1)
	commit()
	require.Len(t, wait().Ended, 1)
}

func TestARoundThatFailsIsDoneAgain(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, followed), job.Success)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_, err := s.Follow(ctx, job.FollowPlan{})
	require.Error(t, err)
	require.Len(t, follow1(t, s).Ended, 1)
}

func TestAJobKnowsWhoHasSubmittedIt(t *testing.T) {
	s := open(t)
	parent := given(t, s)
	child := given(t, s, func(j *job.Submission) { j.Parent = parent })
	require.Equal(t, child, ask[job.ID](t, s, "select job_id from jobs where parent_id = $1", postgres.UUID(parent)))
	require.Equal(t, 1, ask[int](t, s, "select count(*) from jobs where parent_id is null and followed is null"))
}
