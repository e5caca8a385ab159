package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

func yearly(s *job.Schedule) {
	s.Timing = job.Timing{Cron: "0 6 1 1 *", Zone: "Europe/Berlin"}
}

func scheduleNamed(t testing.TB, db *database, name string) job.Schedule {
	t.Helper()
	found, err := db.Schedule(t.Context(), "acme", name)
	require.NoError(t, err)
	return found
}

func TestChecksThatTakeLongHoldBackNoOtherSchedule(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t), accepting, func(c *runtime.Config) {
		inner := c.Accept
		c.Accept = func(ctx context.Context, s *jobs.Service, text []byte, tenant string, trace job.Trace) (job.Submission, error) {
			if bytes.Contains(text, []byte("SLOW")) {
				<-ctx.Done()
				return job.Submission{}, fmt.Errorf("no turn: %w", job.ErrBusy)
			}
			return inner(ctx, s, text, tenant, trace)
		}
	})
	for i := range 3 {
		_, err := p.SetSchedule(t.Context(), everySecond(func(s *job.Schedule) {
			s.Name, s.Job, s.Timing = fmt.Sprintf("slow%d", i), json.RawMessage(`{"jobType": "SLOW"}`), job.Timing{Every: time.Hour}
		}))
		require.NoError(t, err)
		back(t, db, fmt.Sprintf("slow%d", i), time.Duration(10-i)*time.Second)
	}
	setSchedule(t, p, everySecond())
	awaitTicks(t, db, "often", 2)
	slow := scheduleNamed(t, db, "slow0")
	require.Contains(t, slow.LastError, "no turn")
	require.Zero(t, slow.Counts, "its tick is not lost")
	require.True(t, slow.NextAt.Before(ask[time.Time](t, db, "select now()")))
	require.True(t, ask[bool](t, db, "select retry_at > next_at from schedules where name = 'slow0'"))
}

func TestAnInstantThatIsNoTickMakesNoJob(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t), accepting)
	set := setSchedule(t, p, everySecond(yearly))
	_, err := db.pool.Exec(t.Context(), "update schedules set next_at = now() - interval '3 hours'")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return scheduleNamed(t, db, "often").NextAt.Equal(set.NextAt) }, patience, tick)
	require.Zero(t, scheduleNamed(t, db, "often").Counts)
	require.Zero(t, ask[int](t, db, "select count(*) from jobs"))
}

func TestAScheduleWhoseZoneIsMissingKeepsItsTick(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t), accepting)
	setSchedule(t, p, everySecond(yearly))
	_, err := db.pool.Exec(t.Context(), "update schedules set zone = 'Mars/Olympus', next_at = date_trunc('second', now())")
	require.NoError(t, err)
	before := scheduleNamed(t, db, "often").NextAt
	require.Eventually(t, func() bool { return scheduleNamed(t, db, "often").LastError != "" }, patience, tick)
	after := scheduleNamed(t, db, "often")
	require.Contains(t, after.LastError, "zone is not a time zone")
	require.Equal(t, before, after.NextAt)
	require.Zero(t, after.Counts)
}

func TestATickThatIsADuplicateOfTheLastJobLeavesItAlone(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t), accepting)
	setSchedule(t, p, everySecond(func(s *job.Schedule) {
		s.Overlap, s.Timing = job.OverlapCancelPrevious, job.Timing{Every: time.Hour}
		s.Job = json.RawMessage(`{"jobType": "ECHO", "payload": {"n": 1}, "uniqueFor": "1h", "uniqueBy": ["/n"]}`)
	}))
	_, err := db.pool.Exec(t.Context(), `update schedules set every = '1 second', anchor = date_trunc('second', now()),
		next_at = date_trunc('second', now()), ends_at = date_trunc('second', now()) + interval '2 seconds'`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return scheduleNamed(t, db, "often").NextAt.IsZero() }, patience, tick)
	require.Equal(t, job.ScheduleCounts{Fired: 1, Skipped: 2}, scheduleNamed(t, db, "often").Counts)
	require.Equal(t, []string{"queued"}, ask[[]string](t, db, "select array_agg(state::text) from current_jobs"))
}

func TestARunByHandHidesNoOpenJobFromTicks(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t), accepting)
	setSchedule(t, p, everySecond(func(s *job.Schedule) { s.Overlap, s.Timing = job.OverlapSkip, job.Timing{Every: time.Hour} }))
	back(t, db, "often", 0)
	of := awaitTicks(t, db, "often", 1).LastJob
	byHand, err := p.RunSchedule(t.Context(), "acme", "often", "key")
	require.NoError(t, err)
	_, err = db.Cancel(t.Context(), byHand.ID)
	require.NoError(t, err)
	began, err := db.Now(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := db.Now(t.Context())
		return err == nil && now.Unix() > began.Unix()
	}, patience, tick, "a run would have another scheduled time")
	again, err := p.RunSchedule(t.Context(), "acme", "often", "key")
	require.NoError(t, err)
	require.True(t, again.Replayed)
	found := scheduleNamed(t, db, "often")
	require.Equal(t, of, found.LastJob)
	require.Equal(t, job.Queued, found.LastJobState)
}

func TestAFailureThatStaysIsLoggedOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	logged := &linesWith{text: "a tick of a schedule could make no job"}
	p := launch(t, db, supervise(t), accepting, func(c *runtime.Config) {
		c.AcceptUnknownTypes = false
		c.Log = slog.New(slog.NewTextHandler(logged, nil))
	})
	_, err := p.SetSchedule(t.Context(), everySecond(func(s *job.Schedule) { s.Job = json.RawMessage(`{"jobType": "NOBODY"}`) }))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return scheduleNamed(t, db, "often").Counts.Failed >= 3 }, patience, tick)
	require.Equal(t, int64(1), logged.n.Load())
}

// linesWith counts the lines of a log that have the text.
type linesWith struct {
	text string
	n    atomic.Int64
}

func (l *linesWith) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(l.text)) {
		l.n.Add(1)
	}
	return len(line), nil
}
