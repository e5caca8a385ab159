package store

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	sqltext "github.com/holdfast-jobs/holdfast/store/sql"
)

// replacing fires the latest tick that is due, which cancels the last job.
func replacing(t testing.TB, changes ...func(*job.Submission)) func([]job.DueSchedule, time.Time) []job.Firing {
	decide := deciding(t, 10)
	return func(due []job.DueSchedule, now time.Time) []job.Firing {
		firings := decide(due, now)
		for i := range firings {
			jobs := firings[i].Jobs
			if len(jobs) == 0 {
				continue
			}
			firings[i].Skipped, firings[i].Jobs = int64(len(jobs)-1), jobs[len(jobs)-1:]
			firings[i].CancelLast = due[i].LastJobOpen
			for _, change := range changes {
				change(&firings[i].Jobs[0].Submission)
			}
		}
		return firings
	}
}

func fireOnce(t testing.TB, s *Store, decide func([]job.DueSchedule, time.Time) []job.Firing) []job.Fired {
	t.Helper()
	fired, err := s.FireSchedules(t.Context(), 10, decide)
	require.NoError(t, err)
	return fired
}

// fireAtOnce fires in four processes, as it were, until nothing is due.
func fireAtOnce(t testing.TB, s *Store, decide func([]job.DueSchedule, time.Time) []job.Firing) {
	t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for empty := 0; empty < 3; {
				fired, err := s.FireSchedules(t.Context(), 200, decide)
				if err != nil {
					t.Error(err)
					return
				}
				if len(fired) == 0 {
					empty++
				}
			}
		})
	}
	all.Wait()
}

// Schedules that several processes fire in turns, a tick at a time.
func TestTicksSeeWhatAnotherProcessHasJustFired(t *testing.T) {
	s := open(t)
	const schedules, hours = 300, 40
	for i := range schedules {
		hourly(t, s, fmt.Sprintf("s%d", i), func(s *job.Schedule) {
			s.NextAt, s.Overlap = s.NextAt.Add(-hours*time.Hour), job.OverlapSkip
		})
	}
	fireAtOnce(t, s, func(due []job.DueSchedule, now time.Time) []job.Firing {
		firings := deciding(t, 1)(due, now)
		for i := range firings {
			if due[i].LastJobOpen {
				firings[i].Skipped, firings[i].Jobs = int64(len(firings[i].Jobs)), nil
			}
		}
		return firings
	})
	require.Equal(t, schedules, ask[int](t, s, "select count(*) from jobs"), "one open job each")
	require.Equal(t, schedules, ask[int](t, s, "select sum(fired)::int from schedules"))
	require.Equal(t, schedules*(hours-1), ask[int](t, s, "select sum(skipped)::int from schedules"))
}

// Somebody resumes a schedule after its database's clock was set back.
func TestATickThatComesAgainLeavesItsJobAlone(t *testing.T) {
	s := steppable(t)
	one := hourly(t, s, "one", func(s *job.Schedule) { s.Overlap = job.OverlapCancelPrevious })
	setClock(t, s, 2*time.Hour)
	fireOnce(t, s, replacing(t))
	before, err := s.Schedule(t.Context(), one.Tenant, one.Name)
	require.NoError(t, err)

	setClock(t, s, -2*time.Hour)
	require.NoError(t, s.PauseSchedule(t.Context(), one.Tenant, one.Name, "", ""))
	ended, err := s.ResumeSchedule(t.Context(), before, before.LastTick)
	require.NoError(t, err)
	require.True(t, ended)
	setClock(t, s, 2*time.Hour)
	require.Len(t, fireOnce(t, s, replacing(t)), 1)
	after, err := s.Schedule(t.Context(), one.Tenant, one.Name)
	require.NoError(t, err)
	require.Equal(t, job.Queued, after.LastJobState)
	require.Equal(t, before.LastJob, after.LastJob)
	require.Equal(t, before.Counts, after.Counts, "the tick has been counted")
}

func TestATickThatMakesNoJobCancelsNone(t *testing.T) {
	for name, change := range map[string]func(*job.Submission){
		"the database cannot store it": func(j *job.Submission) { j.Payload = json.RawMessage(`"no`) },
		"its key has another job":      func(j *job.Submission) { j.IdempotencyKey = "taken" },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			given(t, s, func(j *job.Submission) { j.IdempotencyKey = "taken" })
			last := given(t, s)
			hourly(t, s, "one", func(s *job.Schedule) { s.NextAt = s.NextAt.Add(-time.Hour) })
			exec(t, s, "update schedules set overlap = 'cancel_previous', last_job = $1", postgres.UUID(last))
			require.Len(t, fireOnce(t, s, replacing(t, change)), 1)
			require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
			requireState(t, s, last, job.Queued)
		})
	}
}

func TestATickCancelsAJobThatIsBeingClaimed(t *testing.T) {
	s := open(t)
	hourly(t, s, "one", func(s *job.Schedule) { s.NextAt = s.NextAt.Add(-time.Hour) })
	last := given(t, s)
	exec(t, s, "update schedules set overlap = 'cancel_previous', last_job = $1", postgres.UUID(last))
	commit := locked(t, s, sqltext.Text("claim"), claiming(1, aMinute)...)
	var fired []job.Fired
	wait := after(func() (err error) {
		fired, err = s.FireSchedules(t.Context(), 10, replacing(t))
		return err
	})
	awaitBlocked(t, s, 1)
	commit()
	require.NoError(t, wait())
	require.True(t, ask[bool](t, s, "select cancel_requested from leases where job_id = $1", postgres.UUID(last)))
	require.True(t, fired[0].Canceled.Requested)
}

// A schedule with many ticks to catch up does not come first again.
func TestSchedulesThatAreBehindTakeTurns(t *testing.T) {
	s := open(t)
	for i, name := range []string{"a", "b"} {
		hourly(t, s, name, func(s *job.Schedule) { s.NextAt = s.NextAt.Add(time.Duration(i-5) * time.Hour) })
	}
	var turns []string
	for range 4 {
		fired, err := s.FireSchedules(t.Context(), 1, func(due []job.DueSchedule, now time.Time) []job.Firing {
			firings := deciding(t, 1)(due, now)
			firings[0].RetryAt = now
			return firings
		})
		require.NoError(t, err)
		turns = append(turns, fired[0].Name)
	}
	require.Equal(t, []string{"a", "b", "a", "b"}, turns)

	fired := fireOnce(t, s, func(due []job.DueSchedule, now time.Time) []job.Firing {
		return []job.Firing{{Next: due[0].NextAt, RetryAt: now.Add(time.Minute), Error: "no"}}
	})
	require.Len(t, fired, 1, "the other stays due")
	require.Equal(t, fired[0].Name, "a")
	fireAll(t, s, 10)
	require.Len(t, jobsOf(t, s, "a"), 2, "it waits")
	require.Len(t, jobsOf(t, s, "b"), 4)
	in, due, err := s.NextTick(t.Context())
	require.NoError(t, err)
	require.True(t, due)
	require.Positive(t, in)
}
