package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/resolve"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// accepting checks submissions from inside as the program does, and accepts every type.
func accepting(c *runtime.Config) {
	resolver := resolve.New(slog.New(slog.DiscardHandler), job.Cell{})
	c.AcceptUnknownTypes = true
	c.Accept = func(ctx context.Context, s *jobs.Service, text []byte, tenant string, trace job.Trace) (job.Submission, error) {
		return resolver.Text(ctx, s, text, tenant, trace)
	}
}

// everySecond is a schedule, after the changes.
func everySecond(changes ...func(*job.Schedule)) job.Schedule {
	one := job.Schedule{
		Tenant: "acme", Name: "often", Timing: job.Timing{Every: time.Second}, Overlap: job.OverlapAllow, CatchUp: job.CatchUpLast,
		CatchUpWindow: job.DefaultCatchUpWindow, Job: json.RawMessage(`{"jobType": "ECHO", "payload": {"n": 1}}`),
	}
	for _, change := range changes {
		change(&one)
	}
	return one
}

func setSchedule(t testing.TB, p *process, one job.Schedule) job.Schedule {
	t.Helper()
	faults, refused, err := p.CheckSchedule(t.Context(), one)
	require.NoError(t, err)
	require.NoError(t, refused)
	require.Empty(t, faults)
	set, err := p.SetSchedule(t.Context(), one)
	require.NoError(t, err)
	return set
}

// back makes the next tick of a schedule one that is past. If it has an interval, that
// counts from there.
func back(t testing.TB, db *database, name string, by time.Duration) {
	t.Helper()
	_, err := db.pool.Exec(t.Context(), `update schedules set next_at = date_trunc('second', now()) - $2::interval,
		anchor = case when every is not null then date_trunc('second', now()) - $2::interval end where name = $1`, name, by)
	require.NoError(t, err)
}

func awaitTicks(t testing.TB, db *database, name string, n int64) job.Schedule {
	t.Helper()
	var found job.Schedule
	require.Eventually(t, func() bool {
		var err error
		found, err = db.Schedule(t.Context(), "acme", name)
		require.NoError(t, err)
		return found.Counts.Fired >= n
	}, patience, tick)
	return found
}

func TestEachTickMakesOneJobWhoeverFiresIt(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	s := supervise(t, playing("p", 50, succeeds, echo))
	for range 3 {
		launch(t, db, s, accepting)
	}
	p := launch(t, db, s, accepting)
	set := setSchedule(t, p, everySecond())
	require.Equal(t, "active", set.State())
	seen := awaitTicks(t, db, "often", 3)
	keys := ask[[]string](t, db, "select array_agg(idempotency_key order by idempotency_key) from jobs where tenant = 'acme'")
	first, err := time.Parse(time.RFC3339, strings.TrimPrefix(keys[0], "schedule/often/"))
	require.NoError(t, err)
	require.False(t, first.After(set.NextAt), "the schedule may have ticked before its answer was read, but not later than that says")
	for i, key := range keys[:3] {
		at := first.Add(time.Duration(i) * time.Second)
		require.Equal(t, "schedule/often/"+at.Format(time.RFC3339), key)
		require.Equal(t, fmt.Sprintf(`{"n": 1,"scheduledTime":%q}`, at.Format(time.RFC3339)),
			ask[string](t, db, "select payload::text from jobs where idempotency_key = $1", key), "the rest is kept to the letter")
		require.True(t, at.Equal(ask[time.Time](t, db, "select run_at from jobs where idempotency_key = $1", key)))
	}
	require.NotNil(t, seen.LastJob)
	require.False(t, seen.LastTick.Before(first.Add(2*time.Second)))
	require.Zero(t, seen.Counts.Failed+seen.Counts.Missed+seen.Counts.Skipped)
}

func TestMissedTicksAreCaughtUpAsTheScheduleSays(t *testing.T) {
	t.Parallel()
	for catchUp, c := range map[job.CatchUp]struct{ fired, missed int64 }{
		job.CatchUpNone: {0, 5}, job.CatchUpLast: {1, 4}, job.CatchUpAll: {3, 2},
	} {
		t.Run(string(catchUp), func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			p := launch(t, db, supervise(t, playing("p", 50, succeeds, echo)), accepting)
			setSchedule(t, p, everySecond(func(s *job.Schedule) {
				s.Timing = job.Timing{Every: time.Hour, Anchor: ask[time.Time](t, db, "select date_trunc('second', now()) - interval '30 minutes'")}
				s.CatchUp, s.CatchUpWindow = catchUp, 3*time.Hour
			}))
			_, err := db.pool.Exec(t.Context(), "update schedules set next_at = next_at - interval '5 hours'")
			require.NoError(t, err)
			var found job.Schedule
			require.Eventually(t, func() bool {
				found, err = db.Schedule(t.Context(), "acme", "often")
				require.NoError(t, err)
				return found.Counts.Fired+found.Counts.Missed == 5
			}, patience, tick)
			require.Equal(t, job.ScheduleCounts{Fired: c.fired, Missed: c.missed}, found.Counts)
			require.True(t, found.NextAt.After(ask[time.Time](t, db, "select now()")))
		})
	}
}

func TestATickThatCanMakeNoJobHoldsBackNoOther(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t, playing("p", 50, succeeds, echo)), accepting, func(c *runtime.Config) { c.AcceptUnknownTypes = false })
	for i := range 5 {
		_, err := p.SetSchedule(t.Context(), everySecond(func(s *job.Schedule) {
			s.Name, s.Job = fmt.Sprintf("bad%d", i), json.RawMessage(`{"jobType": "NOBODY"}`)
		}))
		require.NoError(t, err)
	}
	// What the database cannot store gets past the checks of submissions.
	_, err := p.SetSchedule(t.Context(), everySecond(func(s *job.Schedule) { s.Name = "zone" }))
	require.NoError(t, err)
	_, err = db.pool.Exec(t.Context(), "update schedules set cron = '* * * * * *', every = null, zone = 'Gone/Zone' where name = 'zone'")
	require.NoError(t, err)
	setSchedule(t, p, everySecond())
	awaitTicks(t, db, "often", 2)
	bad, err := db.Schedule(t.Context(), "acme", "bad3")
	require.NoError(t, err)
	require.GreaterOrEqual(t, bad.Counts.Failed, int64(1))
	require.Zero(t, bad.Counts.Fired)
	require.Contains(t, bad.LastError, "no handler has declared this job type")
	gone, err := db.Schedule(t.Context(), "acme", "zone")
	require.NoError(t, err)
	require.Contains(t, gone.LastError, "zone is not a time zone")
}

func TestOverlapsOfATickWithAnEarlierJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		overlap job.Overlap
		running bool // the last job; else it waits
		want    []job.State
		skipped int64
	}{
		{job.OverlapAllow, false, []job.State{job.Queued, job.Queued, job.Queued}, 0},
		{job.OverlapSkip, false, []job.State{job.Queued}, 2},
		{job.OverlapQueue, false, []job.State{job.Queued}, 2},
		{job.OverlapQueue, true, []job.State{job.Running, job.Queued}, 1},
		{job.OverlapCancelPrevious, false, []job.State{job.Canceled, job.Queued}, 1},
	} {
		t.Run(fmt.Sprintf("%s %t", c.overlap, c.running), func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			// Nobody runs the jobs, unless the test claims one.
			p := launch(t, db, supervise(t), accepting)
			setSchedule(t, p, everySecond(func(s *job.Schedule) {
				s.Overlap, s.Timing = c.overlap, job.Timing{Every: time.Hour, Anchor: time.Unix(1, 0).UTC()}
			}))
			back(t, db, "often", 30*time.Second)
			awaitTicks(t, db, "often", 1)
			if c.running {
				require.Eventually(t, func() bool {
					claimed, err := db.Claim(t.Context(), p.worker.ID, []string{echo}, 1, time.Hour)
					require.NoError(t, err)
					return len(claimed) == 1
				}, patience, tick)
			}
			// Two ticks in time, of which the schedule knows nothing yet.
			_, err := db.pool.Exec(t.Context(), `update schedules set every = '10 seconds', anchor = date_trunc('second', now()) - interval '11 seconds',
				next_at = date_trunc('second', now()) - interval '11 seconds', ends_at = date_trunc('second', now())`)
			require.NoError(t, err)
			var found job.Schedule
			require.Eventually(t, func() bool {
				found, err = db.Schedule(t.Context(), "acme", "often")
				require.NoError(t, err)
				return found.State() == "finished"
			}, patience, tick)
			require.Equal(t, c.skipped, found.Counts.Skipped)
			states := ask[[]string](t, db, "select array_agg(state::text order by job_id) from current_jobs")
			var want []string
			for _, state := range c.want {
				want = append(want, string(state))
			}
			require.Equal(t, want, states)
			require.Empty(t, found.LastError)
		})
	}
}

func TestAPausedScheduleHasNoTicksAndCatchesUpNone(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t, playing("p", 50, succeeds, echo)), accepting)
	setSchedule(t, p, everySecond())
	paused, err := p.PauseSchedule(t.Context(), "acme", "often", "no need", "ann")
	require.NoError(t, err)
	require.Equal(t, "paused", paused.State())
	require.Equal(t, "ann", paused.Pause.By)
	again, err := p.SetSchedule(t.Context(), everySecond(func(s *job.Schedule) { s.Timing.Every = 2 * time.Second }))
	require.NoError(t, err)
	require.Equal(t, "paused", again.State(), "it stays paused when it is set")
	receipt, err := p.RunSchedule(t.Context(), "acme", "often", "")
	require.NoError(t, err)
	awaitState(t, db, receipt.ID, job.Succeeded)
	resumed, err := p.ResumeSchedule(t.Context(), "acme", "often")
	require.NoError(t, err)
	require.Equal(t, "active", resumed.State())
	require.True(t, resumed.NextAt.After(paused.Pause.Since))
	require.NotEqual(t, &receipt.ID, resumed.LastJob, "a run by hand is no tick")
	awaitTicks(t, db, "often", paused.Counts.Fired+1)
	resumed, err = p.ResumeSchedule(t.Context(), "acme", "often")
	require.NoError(t, err, "it is no error to resume it again")
	require.Nil(t, resumed.Pause)
	require.Zero(t, resumed.Counts.Missed)
}

func TestABackfillMakesTheJobsThatAreMissing(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t, playing("p", 50, succeeds, echo)), accepting)
	setSchedule(t, p, everySecond(func(s *job.Schedule) { s.Timing = job.Timing{Cron: "0 * * * *"} }))
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	done, err := p.Backfill(t.Context(), "acme", "often", from, from.Add(2*time.Hour))
	require.NoError(t, err)
	require.Equal(t, job.Backfilled{Ticks: 3, Made: 3}, done)
	done, err = p.Backfill(t.Context(), "acme", "often", from.Add(time.Hour), from.Add(700*time.Hour))
	require.NoError(t, err)
	require.Equal(t, job.Backfilled{Ticks: 700, Made: 698, Found: 2}, done)
	_, err = p.Backfill(t.Context(), "acme", "often", from, from.Add(20_000*time.Hour))
	require.ErrorIs(t, err, job.ErrTooManyTicks)
	_, err = p.Backfill(t.Context(), "acme", "nothing", from, from)
	require.ErrorIs(t, err, job.ErrNoSchedule)
}
