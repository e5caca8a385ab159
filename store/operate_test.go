package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// inState makes a new job and brings it into the state with the usual verbs.
func inState(t testing.TB, s *Store, state job.State) job.ID {
	t.Helper()
	switch state {
	case job.Created:
		return given(t, s, func(j *job.Submission) { j.Hold = true })
	case job.Queued:
		return given(t, s, func(j *job.Submission) { j.Type = "QUEUED" })
	case job.Running:
		return claimFresh(t, s).JobID
	}
	c := claimFresh(t, s)
	settlement := as(c, map[job.State]job.OutcomeKind{
		job.Retry: job.Failure, job.Succeeded: job.Success, job.Dead: job.PermanentFailure, job.Canceled: job.CancelConfirmed,
	}[state])
	settlement.Delay = time.Hour
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
	requireState(t, s, c.JobID, state)
	return c.JobID
}

func TestOperatorsVerbsInEveryState(t *testing.T) {
	s := open(t)
	verbs := map[string]struct {
		do    func(context.Context, job.ID) (job.View, error)
		leads map[job.State]job.State // every other state refuses
	}{
		"cancel": {canceling(s), map[job.State]job.State{
			job.Created: job.Canceled, job.Queued: job.Canceled, job.Retry: job.Canceled,
			job.Running: job.Running, job.Canceled: job.Canceled,
		}},
		"hold":    {s.Hold, map[job.State]job.State{job.Created: job.Created}},
		"release": {s.Release, map[job.State]job.State{job.Created: job.Queued}},
		"requeue": {s.Requeue, map[job.State]job.State{job.Dead: job.Queued}},
	}
	for name, verb := range verbs {
		for _, state := range job.States() {
			t.Run(name+" "+string(state), func(t *testing.T) {
				id := inState(t, s, state)
				before := row(t, s, id)
				to, allowed := verb.leads[state]
				view, err := verb.do(t.Context(), id)
				if !allowed {
					require.ErrorIs(t, err, job.ErrWrongState)
					require.Equal(t, before, row(t, s, id))
					return
				}
				require.NoError(t, err)
				require.Equal(t, to, view.State)
				require.Equal(t, get(t, s, id), view)
				requireState(t, s, id, to)
			})
		}
		_, err := verb.do(t.Context(), newID(t))
		require.ErrorIs(t, err, job.ErrNotFound, name)
	}
}

// canceling has the signature of the other verbs.
func canceling(s *Store) func(context.Context, job.ID) (job.View, error) {
	return func(ctx context.Context, id job.ID) (job.View, error) {
		canceled, err := s.Cancel(ctx, id)
		return canceled.View, err
	}
}

func TestACancelSaysWhetherItEndedTheJobOrAskedItsWorkerTo(t *testing.T) {
	s := open(t)
	for _, state := range []job.State{job.Created, job.Queued, job.Retry, job.Running, job.Canceled} {
		id := inState(t, s, state)
		first, err := s.Cancel(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, state != job.Running && state != job.Canceled, first.Canceled, state)
		require.Equal(t, state == job.Running, first.Requested, state)
		again, err := s.Cancel(t.Context(), id)
		require.NoError(t, err)
		require.False(t, again.Canceled, state)
	}
}

func TestAJobIsSeenWithItsTrace(t *testing.T) {
	s := open(t)
	carried := job.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1", Baggage: "b=2"}
	id := given(t, s, func(j *job.Submission) { j.Hold, j.Trace = true, carried })
	require.Equal(t, carried, get(t, s, id).Trace)
	page, err := s.List(t.Context(), job.Filter{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, carried, page.Jobs[0].Trace)
	canceled, err := s.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, carried, canceled.Trace)
	ended, err := s.Ended(t.Context(), []job.ID{id})
	require.NoError(t, err)
	require.Equal(t, carried, ended[0].Trace)
}

func TestACancelOfARunningJobIsLeftOnItsLease(t *testing.T) {
	s := open(t)
	c := running(t, s)
	for range 2 {
		view, err := s.Cancel(t.Context(), c.JobID)
		require.NoError(t, err)
		require.Equal(t, job.Running, view.State)
	}
	require.True(t, renew(t, s, aMinute, c.Lease)[0].CancelRequested)
	settled(t, s, c, job.CancelConfirmed)
	requireState(t, s, c.JobID, job.Canceled)
}

func TestACancelBehindAClaimReachesTheOwner(t *testing.T) {
	s := open(t)
	id := given(t, s)
	commit := locked(t, s, sql.Text("claim"), claiming(1, aMinute)...)
	wait := after(func() error {
		view, err := s.Cancel(context.Background(), id)
		if err == nil && view.State != job.Running {
			return errors.New("canceled beside its owner: " + string(view.State))
		}
		return err
	})
	awaitBlocked(t, s, 1)
	commit()
	require.NoError(t, wait())
	require.True(t, ask[bool](t, s, "select cancel_requested from leases"))
	requireState(t, s, id, job.Running)
}

// job.ErrUnavailable would be permanent, and clients would wait for the database.
func TestACancelThatTheListsMakeImpossibleDoesNotBlameTheDatabase(t *testing.T) {
	for name, harm := range map[string]string{
		"another due time": "update ready set run_at = run_at - interval '1 hour'",
		"no list":          "delete from ready",
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			id := given(t, s)
			exec(t, s, harm)
			_, err := s.Cancel(t.Context(), id)
			require.ErrorContains(t, err, "cancel a job that is queued: its list disagrees with the ledger")
			require.NotErrorIs(t, err, job.ErrUnavailable)
			require.NotErrorIs(t, err, job.ErrWrongState)
		})
	}
}

func TestACancelBehindAPromotionIsNotLost(t *testing.T) {
	s := open(t)
	id := given(t, s, func(j *job.Submission) { j.Delay = time.Hour })
	exec(t, s, "update timers set run_at = now() - interval '1 second'")
	exec(t, s, "update jobs set run_at = (select run_at from timers)")
	commit := locked(t, s, sql.Text("promote"), 10)
	wait := after(func() error {
		_, err := s.Cancel(context.Background(), id)
		return err
	})
	awaitBlocked(t, s, 1)
	commit()
	require.NoError(t, wait())
	requireState(t, s, id, job.Canceled)
}

func TestAClaimSkipsAJobThatIsBeingCanceled(t *testing.T) {
	s := open(t)
	id := given(t, s)
	commit := locked(t, s, sql.Text("cancel"), postgres.UUID(id))
	require.Empty(t, claim(t, s, 10))
	commit()
	require.Empty(t, claim(t, s, 10))
	requireState(t, s, id, job.Canceled)
}

// Cancels, claims, promotions and settlements race. An accepted cancel is carried out,
// and nothing else happens to the job.
func TestCancelsRacingWithEveryLoop(t *testing.T) {
	s := open(t)
	const jobs = 120
	ids := make([]job.ID, jobs)
	for i := range ids {
		ids[i] = given(t, s, func(j *job.Submission) {
			if i%2 == 1 {
				j.Delay = time.Hour
			}
		})
	}
	exec(t, s, "update jobs set run_at = now() where state = 'created'")
	exec(t, s, "update timers set run_at = (select run_at from jobs where jobs.job_id = timers.job_id)")

	ctx := t.Context()
	loop, end := loops(t)
	defer end()
	var cancels sync.WaitGroup
	loop(func() error { _, err := s.Promote(ctx, 3); return err })
	loop(func() error {
		claimed, err := s.Claim(ctx, worker, []string{jobType}, 3, aMinute)
		if err != nil {
			return err
		}
		for _, c := range claimed {
			fates, err := s.Settle(ctx, []job.Settlement{as(c, job.Released)})
			if err != nil {
				return err
			}
			if fates[0] == job.Canceling {
				if fates, err = s.Settle(ctx, []job.Settlement{as(c, job.CancelConfirmed)}); err != nil {
					return err
				}
			}
			if fates[0] != job.Settled {
				return errors.New("owner got " + string(fates[0]))
			}
		}
		return nil
	})
	for part := range 2 {
		cancels.Go(func() {
			for _, id := range ids[part*jobs/2 : (part+1)*jobs/2] {
				if _, err := s.Cancel(ctx, id); err != nil && !errors.Is(err, job.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	cancels.Wait()
	require.Eventually(t, func() bool {
		for _, id := range ids {
			if _, err := s.Cancel(ctx, id); err != nil && !errors.Is(err, job.ErrUnavailable) {
				return false
			}
		}
		return ask[int](t, s, "select count(*) from jobs where state <> 'canceled'") == 0
	}, patience, time.Millisecond)
	end()
	requireSound(t, s)
}

func TestAReleasedJobIsDueNow(t *testing.T) {
	s := open(t)
	for name, change := range map[string]func(*job.Submission){
		"held":      func(j *job.Submission) { j.Hold = true },
		"scheduled": func(j *job.Submission) { j.Delay = time.Hour },
	} {
		id := given(t, s, change)
		view, err := s.Release(t.Context(), id)
		require.NoError(t, err, name)
		require.Equal(t, job.Queued, view.State, name)
		claimed := claim(t, s, 10)
		require.Len(t, claimed, 1, name)
		require.True(t, claimed[0].RunAt.Equal(ask[time.Time](t, s, "select max(run_at) from jobs")), name)
	}
	requireSound(t, s)
}

func TestARequeuedJobIsAsIfItHadNeverBeenTried(t *testing.T) {
	s := open(t)
	c := running(t, s, func(j *job.Submission) { j.MaxAttempts = 1 })
	require.Equal(t, job.Dead, as(c, job.Failure).To)
	settlement := as(c, job.Failure)
	settlement.Interruptions, settlement.Crashes = 3, 3
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))

	view, err := s.Requeue(t.Context(), c.JobID)
	require.NoError(t, err)
	require.Nil(t, view.StartedAt)
	require.Nil(t, view.FinishedAt)
	require.True(t, ask[bool](t, s, `select attempt = 0 and interruptions = 0 and crashes = 0 and last_error is null
		and worker_id is null and fence = 1 and run_at = updated_at from jobs`))
	requireSound(t, s)

	again := claim(t, s, 1)[0]
	require.Equal(t, 1, again.Attempt)
	settled(t, s, again, job.Success)
	attempts := detail(t, s, c.JobID).Attempts
	require.Len(t, attempts, 2)
	require.Equal(t, []int64{1, 2}, []int64{attempts[0].Fence, attempts[1].Fence})
}

func TestRedriveRequeuesTheLongestDeadUpToItsLimit(t *testing.T) {
	s := open(t)
	var ids []job.ID
	for range 5 {
		ids = append(ids, dead(t, s))
	}
	commit := locked(t, s, "select from dead_letters where job_id = $1 for update", postgres.UUID(ids[1]))
	requeued, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 2})
	require.NoError(t, err)
	require.ElementsMatch(t, []job.ID{ids[0], ids[2]}, []job.ID{requeued[0].ID, requeued[1].ID})
	full := detail(t, s, ids[0])
	require.Contains(t, requeued, job.Requeued{ID: ids[0], Type: full.Type, Tenant: full.Tenant, Trace: full.Trace})
	commit()
	for i, state := range []job.State{job.Queued, job.Dead, job.Queued, job.Dead, job.Dead} {
		requireState(t, s, ids[i], state)
	}
	requeued, err = s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 100})
	require.NoError(t, err)
	require.Len(t, requeued, 3)
	requeued, err = s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 100})
	require.NoError(t, err)
	require.Empty(t, requeued)
	require.Len(t, claim(t, s, 10), 5)
	requireSound(t, s)
}

func TestOneOfManyRequeuesWins(t *testing.T) {
	s := open(t)
	id := dead(t, s)
	var all sync.WaitGroup
	won := make(chan bool, 12)
	for i := range 12 {
		all.Go(func() {
			if i%3 == 0 {
				requeued, err := s.Redrive(context.Background(), job.DeadLetterFilter{Limit: 10})
				if err != nil {
					t.Error(err)
				}
				won <- len(requeued) == 1
				return
			}
			_, err := s.Requeue(context.Background(), id)
			if err != nil && !errors.Is(err, job.ErrWrongState) {
				t.Error(err)
			}
			won <- err == nil
		})
	}
	all.Wait()
	close(won)
	winners := 0
	for w := range won {
		if w {
			winners++
		}
	}
	require.Equal(t, 1, winners)
	requireState(t, s, id, job.Queued)
}
