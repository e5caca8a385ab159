package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// lapse makes jobs expire a moment ago, or after the time given.
func lapse(t testing.TB, s *Store, in time.Duration, ids ...job.ID) {
	t.Helper()
	for _, id := range ids {
		exec(t, s, `with expiring as (
				update jobs set expires_at = now() + $2::interval where job_id = $1 returning job_id, expires_at
			) insert into expiries select * from expiring
			on conflict (job_id) do update set expires_at = excluded.expires_at`, postgres.UUID(id), postgres.Interval(in))
	}
}

func expireJobs(t testing.TB, s *Store, limit int) (lapsed []job.Lapsed, entries int) {
	t.Helper()
	lapsed, entries, err := s.Expire(t.Context(), limit)
	require.NoError(t, err)
	return lapsed, entries
}

func TestJobsThatHaveNotStartedByTheirTimeAreCanceled(t *testing.T) {
	s := open(t)
	carried := job.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1"}
	for name, changes := range map[string]func(*job.Submission){
		"claimable": func(j *job.Submission) { j.Priority = 3 },
		"scheduled": func(j *job.Submission) { j.Delay = time.Hour },
		"held":      func(j *job.Submission) { j.Hold = true },
	} {
		t.Run(name, func(t *testing.T) {
			id := given(t, s, changes, func(j *job.Submission) { j.Tenant, j.Trace = "acme", carried })
			later := given(t, s, changes)
			lapse(t, s, 0, id)
			lapse(t, s, time.Hour, later)
			before := ask[int64](t, s, "select coalesce(sum(jobs), 0)::bigint from tallies where event = 'withdrawn'")

			lapsed, entries := expireJobs(t, s, 10)
			reason := job.LapsedReason(detail(t, s, id).ExpiresAt)
			require.Equal(t, []job.Lapsed{{ID: id, Type: jobType, Tenant: "acme", Reason: reason, Trace: carried}}, lapsed)
			require.Equal(t, 1, entries)
			requireState(t, s, id, job.Canceled)
			require.Equal(t, reason, detail(t, s, id).LastError)
			require.NotNil(t, get(t, s, id).FinishedAt)
			require.Equal(t, before+1, ask[int64](t, s, "select sum(jobs)::bigint from tallies where event = 'withdrawn'"))
			require.NotEqual(t, job.Canceled, get(t, s, later).State)
			lapsed, entries = expireJobs(t, s, 10)
			require.Empty(t, lapsed)
			require.Zero(t, entries)
		})
	}
}

func TestJobsWithGatesExpireAndFreeWhatTheyHold(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct {
		given func() job.ID
		freed []wake
	}{
		"parked": {func() job.ID {
			id := given(t, s, gated(fairGate, keyGate))
			wakes(t, s)
			return id
		}, []wake{}},
		"admitted": {func() job.ID { return admitted(t, s, gated(keyGate, typeGate)) }, []wake{freed(keyGate, typeGate)}},
		"admitted, with a turn": {func() job.ID {
			id := given(t, s, gated(fairGate, keyGate))
			exec(t, s, "update parked set position = now() - interval '1 day', turn = true")
			require.NoError(t, admit(t.Context(), s))
			return id
		}, []wake{freed(fairGate, keyGate)}},
	} {
		t.Run(name, func(t *testing.T) {
			id := c.given()
			lapse(t, s, 0, id)
			lapsed, entries := expireJobs(t, s, 10)
			require.Len(t, lapsed, 1)
			require.Equal(t, len(c.freed) > 0, lapsed[0].Freed)
			require.Equal(t, 1, entries)
			requireState(t, s, id, job.Canceled)
			requireSlots(t.Context(), t, s)
			require.Equal(t, c.freed, wakes(t, s))
			exec(t, s, "delete from slots")
		})
	}
}

func TestJobsThatHaveStartedDoNotExpire(t *testing.T) {
	s := open(t)
	started := func(c job.Claimed, kind job.OutcomeKind) job.ID {
		settlement := as(c, kind)
		settlement.Started = true
		require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
		return c.JobID
	}
	for name, begin := range map[string]func(job.Claimed) job.ID{
		"running":     func(c job.Claimed) job.ID { return c.JobID },
		"failed":      func(c job.Claimed) job.ID { return started(c, job.Failure) },
		"snoozed":     func(c job.Claimed) job.ID { return started(c, job.Snoozed) },
		"given back":  func(c job.Claimed) job.ID { return started(c, job.Released) },
		"interrupted": func(c job.Claimed) job.ID { return started(c, job.Interrupted) },
		"suspected":   func(c job.Claimed) job.ID { return started(c, job.Suspect) },
		"succeeded":   func(c job.Claimed) job.ID { return started(c, job.Success) },
		"dead":        func(c job.Claimed) job.ID { return started(c, job.PermanentFailure) },
		"requeued": func(c job.Claimed) job.ID {
			started(c, job.PermanentFailure)
			_, err := s.Requeue(t.Context(), c.JobID)
			require.NoError(t, err)
			return c.JobID
		},
		"redriven": func(c job.Claimed) job.ID {
			started(c, job.PermanentFailure)
			_, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
			require.NoError(t, err)
			return c.JobID
		},
		"retried and due": func(c job.Claimed) job.ID {
			started(c, job.Failure)
			promote(t, s, 10)
			return c.JobID
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := given(t, s)
			lapse(t, s, time.Hour, id)
			s.marks = newLowWaterMarks()
			c := claim(t, s, 1)[0]
			require.Equal(t, id, c.JobID)
			require.WithinDuration(t, c.ClaimedAt.Add(time.Hour), c.ExpiresAt, time.Minute)
			begin(c)
			exec(t, s, "update expiries set expires_at = now()")
			before := row(t, s, id)

			lapsed, entries := expireJobs(t, s, 10)
			require.Empty(t, lapsed)
			require.Equal(t, 1, entries, "the entry leaves the list")
			require.Equal(t, before, row(t, s, id))
			requireSound(t, s)
			exec(t, s, "delete from ready; delete from leases; delete from timers; delete from jobs; delete from dead_letters; delete from unsuccessful_attempts")
		})
	}
}

// The expiry of a claimed job is off the list, so that it is not looked at again and
// again while the job runs.
func TestAJobThatWasClaimedButNotStartedStillExpires(t *testing.T) {
	s := open(t)
	for _, looked := range []bool{false, true} {
		c := running(t, s)
		lapse(t, s, 0, c.JobID)
		if looked {
			lapsed, entries := expireJobs(t, s, 10)
			require.Empty(t, lapsed)
			require.Equal(t, 1, entries)
			require.Zero(t, ask[int](t, s, "select count(*) from expiries"))
		}
		settled(t, s, c, job.Released)
		lapsed, entries := expireJobs(t, s, 10)
		require.Len(t, lapsed, 1)
		require.Equal(t, 1, entries)
		requireState(t, s, c.JobID, job.Canceled)
	}
}

func TestAnExpiredJobThatIsBeingMovedIsLeftForTheNextTime(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct {
		given func(*job.Submission)
		lock  string
	}{
		"claimed":  {func(*job.Submission) {}, "select from ready for update"},
		"promoted": {func(j *job.Submission) { j.Delay = time.Hour }, "select from timers for update"},
	} {
		t.Run(name, func(t *testing.T) {
			id := given(t, s, c.given)
			lapse(t, s, 0, id)
			commit := locked(t, s, c.lock)
			lapsed, entries := expireJobs(t, s, 10)
			require.Empty(t, lapsed)
			require.Zero(t, entries)
			commit()
			lapsed, _ = expireJobs(t, s, 10)
			require.Len(t, lapsed, 1)
			requireState(t, s, id, job.Canceled)
		})
	}
}

// A claim takes the job between the moment that the statement sees and its lock, and
// gives it back before the statement looks for the lease.
func TestAnExpiryIsNotLostToAClaimThatIsGivenBack(t *testing.T) {
	s := open(t)
	c := running(t, s)
	lapse(t, s, 0, c.JobID)
	released := as(c, job.Released)
	commit := locked(t, s, sql.Text("release_claim"), releaseColumns([]*job.Settlement{&released})...)
	lapsed, entries := expireJobs(t, s, 10)
	require.Empty(t, lapsed)
	require.Zero(t, entries, "the lease is locked")
	commit()
	lapsed, _ = expireJobs(t, s, 10)
	require.Len(t, lapsed, 1)
}

func TestEachJobThatExpiresIsCanceledOrClaimedButNotBoth(t *testing.T) {
	s := open(t)
	const jobs = 400
	ids := submit(t, s, submissions(t, jobs)...)
	exec(t, s, "update jobs set expires_at = now()")
	exec(t, s, "insert into expiries select job_id, expires_at from jobs")
	var mu sync.Mutex
	ended := make(map[job.ID]string)
	note := func(id job.ID, what string) {
		mu.Lock()
		defer mu.Unlock()
		if ended[id] != "" {
			ended[id] += " and "
		}
		ended[id] += what
	}
	for _, c := range claim(t, s, 7) {
		note(c.JobID, "claimed")
	}
	lapsed, _ := expireJobs(t, s, 7)
	for _, one := range lapsed {
		note(one.ID, "canceled")
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for range jobs / 2 / 8 { // so that neither can take them all
				if i%2 == 0 {
					claimed, err := s.Claim(context.Background(), worker, []string{jobType}, 7, aMinute)
					if err != nil {
						t.Error(err)
					}
					for _, c := range claimed {
						note(c.JobID, "claimed")
					}
					continue
				}
				lapsed, _, err := s.Expire(context.Background(), 7)
				if err != nil {
					t.Error(err)
				}
				for _, one := range lapsed {
					note(one.ID, "canceled")
				}
			}
		})
	}
	group.Wait()
	for {
		lapsed, entries := expireJobs(t, s, jobs)
		for _, one := range lapsed {
			note(one.ID, "canceled")
		}
		if entries == 0 {
			break
		}
	}
	count := make(map[string]int)
	for _, id := range ids {
		count[ended[id]]++
	}
	require.Equal(t, jobs, count["claimed"]+count["canceled"], count)
	require.Positive(t, count["claimed"])
	require.Positive(t, count["canceled"])
	require.Zero(t, ask[int](t, s, "select count(*) from expiries"))
	requireSound(t, s)
}

func TestTheNextExpiry(t *testing.T) {
	s := open(t)
	next := func() (time.Duration, bool) {
		in, ok, err := s.NextExpiry(t.Context())
		require.NoError(t, err)
		return in, ok
	}
	_, ok := next()
	require.False(t, ok)
	ids := submit(t, s, submissions(t, 2)...)
	lapse(t, s, 2*time.Hour, ids[0])
	lapse(t, s, time.Hour, ids[1])
	in, ok := next()
	require.True(t, ok)
	require.InDelta(t, time.Hour, in, float64(time.Minute))
	lapse(t, s, -time.Hour, ids[1])
	in, ok = next()
	require.True(t, ok)
	require.Zero(t, in)
}

// The ledger of a job that has started has no time of expiry any more, but its entry is in the list until then.
func TestTheExpiryOfAStartedJobIsDeletedWithTheJob(t *testing.T) {
	s := open(t)
	keep := time.Hour
	policies := job.RetentionPolicies{Default: job.Retention{Succeeded: &keep, Canceled: &keep, Dead: &keep, Keys: &keep}}
	for walk, end := range map[job.Walk]job.OutcomeKind{job.WalkEnded: job.Success, job.WalkDead: job.PermanentFailure} {
		id := given(t, s)
		lapse(t, s, 24*time.Hour, id)
		for _, outcome := range []job.OutcomeKind{job.Released, end} {
			s.marks = newLowWaterMarks()
			settlement := as(claim(t, s, 1)[0], outcome)
			settlement.Started = true
			require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
		}
		// The walk over ended jobs goes by id, which tells when a job was created.
		exec(t, s, "update expiries set job_id = '00000000-0000-7000-8000-000000000001'")
		exec(t, s, "update dead_letters set job_id = '00000000-0000-7000-8000-000000000001', dead_at = now() - interval '2 hours'")
		exec(t, s, "update jobs set job_id = '00000000-0000-7000-8000-000000000001', finished_at = now() - interval '2 hours'")
		require.Equal(t, 1, ask[int](t, s, "select count(*) from expiries"))

		_, err := s.Sweep(t.Context(), walk, policies, worker, 10, true)
		require.NoError(t, err)
		require.Zero(t, ask[int](t, s, "select count(*) from jobs"), walk)
		require.Zero(t, ask[int](t, s, "select count(*) from expiries"), walk)
	}
}
