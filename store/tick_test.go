package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/schedule"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// steppable is a store whose database tells the time that the test sets: its now() is
// another than PostgreSQL's.
func steppable(t testing.TB) *Store {
	t.Helper()
	plain := open(t)
	exec(t, plain, `create schema clock`)
	exec(t, plain, `create table clock.skew (by interval not null)`)
	exec(t, plain, `insert into clock.skew values ('0')`)
	exec(t, plain, `create function clock.now() returns timestamptz language sql stable as 'select pg_catalog.now() + by from clock.skew'`)
	return openAt(t, onClock(t, urlOf(plain)))
}

func setClock(t testing.TB, s *Store, by time.Duration) {
	t.Helper()
	exec(t, s, `update clock.skew set by = by + $1::interval`, by)
}

func timeOf(t testing.TB, s *Store) time.Time {
	t.Helper()
	now, err := s.Now(t.Context())
	require.NoError(t, err)
	return now
}

// hourly is a schedule that catches up everything, from the next hour on.
func hourly(t testing.TB, s *Store, name string, changes ...func(*job.Schedule)) job.Schedule {
	t.Helper()
	one := job.Schedule{
		Tenant: job.DefaultTenant, Name: name, Timing: job.Timing{Every: time.Hour}, Overlap: job.OverlapAllow, CatchUp: job.CatchUpAll,
		CatchUpWindow: job.MaxCatchUpWindow, Job: json.RawMessage(`{"jobType": "ECHO"}`),
		NextAt: timeOf(t, s).Truncate(time.Hour).Add(time.Hour),
	}
	for _, change := range changes {
		change(&one)
	}
	require.NoError(t, s.SetSchedule(t.Context(), one))
	return one
}

// deciding fires what is due, at most so many ticks of a schedule.
func deciding(t testing.TB, most int) func([]job.DueSchedule, time.Time) []job.Firing {
	return func(due []job.DueSchedule, now time.Time) []job.Firing {
		firings := make([]job.Firing, len(due))
		for i, one := range due {
			ticks, faults := schedule.New(one.Timing)
			if len(faults) > 0 {
				t.Errorf("%+v", faults)
				continue
			}
			found := ticks.Due(one.NextAt, now, one.CatchUp, one.CatchUpWindow, most)
			firings[i] = job.Firing{Next: found.Next, Missed: found.Missed}
			for _, tick := range found.Fire {
				made := submission(t)
				schedule.Complete(one.Schedule, tick, &made)
				firings[i].Jobs = append(firings[i].Jobs, job.TickJob{Tick: tick, Submission: made})
			}
		}
		return firings
	}
}

// fireAll fires until nothing is due, whatever goes wrong on the way.
func fireAll(t testing.TB, s *Store, most int) {
	t.Helper()
	for failures := 0; ; {
		fired, err := s.FireSchedules(t.Context(), 10, deciding(t, most))
		if err != nil {
			failures++
			require.Less(t, failures, 50, err)
			continue
		}
		// A connection that was ended may have locked some for a little longer.
		if len(fired) == 0 && ask[int](t, s, "select count(*) from schedules where look_at <= $1", timeOf(t, s)) == 0 {
			return
		}
	}
}

// jobsOf are the ticks of a schedule that have jobs, in order.
func jobsOf(t testing.TB, s *Store, name string) []time.Time {
	t.Helper()
	return ask[[]time.Time](t, s, `select coalesce(array_agg(run_at order by run_at), '{}') from jobs where idempotency_key like 'schedule/' || $1 || '/%'`, name)
}

// requireNoneMissing checks that each tick from the first to now has its job, and no other.
func requireNoneMissing(t testing.TB, s *Store, one job.Schedule, until time.Time) {
	t.Helper()
	ticks, faults := schedule.New(one.Timing)
	require.Empty(t, faults)
	want := ticks.Between(one.NextAt, until, 100_000)
	got := jobsOf(t, s, one.Name)
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, want[i].Equal(got[i]), "%s %s", want[i], got[i])
	}
}

func TestTheDatabasesClockIsStepped(t *testing.T) {
	s := steppable(t)
	one := hourly(t, s, "one")
	fireAll(t, s, 100)
	require.Empty(t, jobsOf(t, s, "one"))
	setClock(t, s, 10*time.Hour)
	latest := timeOf(t, s)
	fireAll(t, s, 3)
	requireNoneMissing(t, s, one, latest)
	for range 3 {
		setClock(t, s, -3*time.Hour)
		fireAll(t, s, 100)
		requireNoneMissing(t, s, one, latest)
	}
	setClock(t, s, 20*time.Hour)
	fireAll(t, s, 100)
	requireNoneMissing(t, s, one, timeOf(t, s))

	last := hourly(t, s, "last", func(s *job.Schedule) { s.CatchUp = job.CatchUpLast })
	setClock(t, s, 10*time.Hour)
	fireAll(t, s, 100)
	require.Len(t, jobsOf(t, s, "last"), 1)
	setClock(t, s, -9*time.Hour)
	fireAll(t, s, 100)
	require.Len(t, jobsOf(t, s, "last"), 1, "a clock that goes back fires nothing again")
	require.True(t, jobsOf(t, s, "last")[0].After(last.NextAt))
}

// Orchestrators fire at the same time, lose their connections between any two statements,
// around the commit, too, and the clock jumps.
func TestTicksAreNeitherDoubledNorLostWhateverBreaks(t *testing.T) {
	s := steppable(t)
	random := rand.New(rand.NewPCG(17, 4)) //nolint:gosec // repeatable
	var all []job.Schedule
	for i := range 5 {
		all = append(all, hourly(t, s, fmt.Sprintf("s%d", i)))
	}
	killer := aside(t, urlOf(s))
	latest := timeOf(t, s)
	for range 40 {
		setClock(t, s, time.Duration(random.IntN(600)-150)*time.Minute)
		if now := timeOf(t, s); now.After(latest) {
			latest = now
		}
		var firing sync.WaitGroup
		for range 3 {
			most, kill, after := 1+random.IntN(5), random.IntN(3) == 0, random.IntN(2) == 0
			firing.Go(func() {
				decide := deciding(t, most)
				_, _ = s.FireSchedules(t.Context(), 1+most, func(due []job.DueSchedule, now time.Time) []job.Firing {
					end := func() {
						_, err := killer.Exec(context.WithoutCancel(t.Context()), `select pg_terminate_backend(pid) from pg_stat_activity
							where application_name = 'holdfast submission' and datname = current_database() and state = 'idle in transaction'`)
						if err != nil {
							t.Error(err)
						}
					}
					if kill && !after {
						end()
					}
					firings := decide(due, now)
					if kill && after {
						end()
					}
					return firings
				})
			})
		}
		firing.Wait()
	}
	if behind := latest.Sub(timeOf(t, s)); behind > 0 { // All three may have failed at the latest time.
		setClock(t, s, behind)
	}
	fireAll(t, s, 100)
	for _, one := range all {
		requireNoneMissing(t, s, one, latest)
	}
	total := ask[int64](t, s, "select sum(fired)::bigint from schedules")
	require.Equal(t, ask[int64](t, s, "select count(*) from jobs"), total, "what is counted is what was committed")
}

// The commit is made, but its answer never comes.
func TestACommitWithoutAnAnswerFiresNothingTwice(t *testing.T) {
	plain := open(t)
	proxy := pgtest.Between(t, urlOf(plain))
	s := openAt(t, proxy.URL)
	one := hourly(t, s, "one", func(s *job.Schedule) { s.NextAt = s.NextAt.Add(-5 * time.Hour) })
	for lost := range 3 {
		proxy.LoseCommits.Store(1)
		_, err := s.FireSchedules(t.Context(), 10, deciding(t, 1))
		require.ErrorIs(t, err, job.ErrOutcomeUnknown)
		require.Len(t, jobsOf(t, plain, "one"), lost+1, "it was committed")
	}
	fireAll(t, s, 100)
	requireNoneMissing(t, plain, one, timeOf(t, plain))
}

func TestTwoThatFireAtOnceTakeDifferentSchedules(t *testing.T) {
	s := open(t)
	for i := range 4 {
		hourly(t, s, fmt.Sprintf("s%d", i), func(s *job.Schedule) { s.NextAt = s.NextAt.Add(-2 * time.Hour) })
	}
	var mu sync.Mutex
	var taken []string
	start := make(chan struct{})
	var both, ready sync.WaitGroup
	ready.Add(2)
	for range 2 {
		both.Go(func() {
			<-start
			_, err := s.FireSchedules(t.Context(), 2, func(due []job.DueSchedule, now time.Time) []job.Firing {
				mu.Lock()
				for _, one := range due {
					taken = append(taken, one.Name)
				}
				mu.Unlock()
				ready.Done()
				ready.Wait() // both have locked their rows
				return deciding(t, 10)(due, now)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	both.Wait()
	require.ElementsMatch(t, []string{"s0", "s1", "s2", "s3"}, taken)
}

func TestAJobThatCannotBeStoredKeepsBackNoOther(t *testing.T) {
	s := open(t)
	for _, name := range []string{"a", "bad", "c"} {
		hourly(t, s, name, func(s *job.Schedule) { s.NextAt = s.NextAt.Add(-time.Hour) })
	}
	fired, err := s.FireSchedules(t.Context(), 10, func(due []job.DueSchedule, now time.Time) []job.Firing {
		firings := deciding(t, 10)(due, now)
		for i, one := range due {
			if one.Name == "bad" {
				firings[i].Jobs[0].Submission.Tags = []string{"\x00"}
				firings[i].Jobs[0].Submission.Payload = json.RawMessage(`"no`)
			}
		}
		return firings
	})
	require.NoError(t, err)
	require.Len(t, fired, 3)
	require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
	bad, err := s.Schedule(t.Context(), job.DefaultTenant, "bad")
	require.NoError(t, err)
	require.Equal(t, job.ScheduleCounts{Failed: 1}, bad.Counts)
	require.Contains(t, bad.LastError, "value cannot be stored")
	require.True(t, bad.NextAt.After(timeOf(t, s)), "it has moved on")
}
