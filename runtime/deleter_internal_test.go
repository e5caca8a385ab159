package runtime

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// heap is a store of so many old jobs, each of which takes a time to delete.
type heap struct {
	Store
	old      int64
	each     time.Duration
	failures int
	taken    bool // by another deleter
	walked   time.Duration

	longest            time.Duration
	worked             time.Duration
	portions, restarts int
	forgotten          int
	policies           job.RetentionPolicies

	acts, tidied int
	kept         time.Duration
}

func (h *heap) Sweep(
	_ context.Context, walk job.Walk, policies job.RetentionPolicies, _ string, limit int, restart bool,
) (job.Swept, error) {
	h.policies = policies
	switch {
	case walk == job.WalkDead:
		return job.Swept{Reached: true}, nil
	case h.failures > 0:
		h.failures--
		return job.Swept{}, errors.New("away")
	case h.taken:
		return job.Swept{}, nil
	}
	if restart {
		h.restarts++
		h.walked = 0
	}
	n := min(int64(limit), h.old)
	took := time.Millisecond + time.Duration(n)*h.each
	time.Sleep(took) // of a bubble
	h.old -= n
	h.longest = max(h.longest, took)
	h.worked += took
	h.portions++
	return job.Swept{Mine: true, Reached: n < int64(limit), Walked: h.walked, Deleted: map[job.State]int64{job.Succeeded: n}}, nil
}

func (h *heap) ForgetWalk(context.Context, job.Walk) error {
	h.forgotten++
	return nil
}

func (h *heap) ForgetLogins(context.Context) (int, error) {
	h.tidied++
	return 0, nil
}

func (h *heap) ForgetActs(_ context.Context, keep time.Duration, limit int) (int, error) {
	h.kept = keep
	n := min(limit, h.acts)
	h.acts -= n
	return n, nil
}

func deleting(t *testing.T, h *heap) *deleter {
	t.Helper()
	cfg := Config{Config: jobs.Config{
		PollInterval: time.Hour, Resolve: func(s job.TypeSpec) job.TypeSpec { return s }, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
	}}
	cfg.Retention = job.RetentionPolicies{Default: job.Retention{Succeeded: new(time.Hour), Dead: new(time.Hour)}}
	service, err := jobs.New(cfg.Config, h)
	require.NoError(t, err)
	return newDeleter(cfg, h, service)
}

func runFor(t *testing.T, d *deleter, period time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), period)
	defer cancel()
	d.run(ctx)
}

func TestPortionsAreShortAndTheDeleterRestsBetweenThem(t *testing.T) {
	for _, each := range []time.Duration{time.Microsecond, 10 * time.Microsecond, time.Millisecond} {
		t.Run(each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heap{old: 1 << 40, each: each}
				runFor(t, deleting(t, h), time.Minute+sweepIdle)
				require.Less(t, h.longest, 110*time.Millisecond, "the first portion")
				h.longest = 0
				require.InDelta(t, time.Minute/(1+restUsual), h.worked, float64(2*time.Second), "a fifth of the time")
				require.Less(t, (h.worked-time.Second)/time.Duration(h.portions), 2*sweepAim)
			})
		})
	}
}

func TestTheDeleterGoesOnAfterErrorsAndAfterAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heap{old: 100_000, failures: 2, taken: true}
		d := deleting(t, h)
		runFor(t, d, time.Minute)
		require.EqualValues(t, 100_000, h.old, "another one is at it")
		h.taken = false
		runFor(t, d, 2*sweepIdle)
		require.Zero(t, h.old)
	})
}

func TestAWalkBeginsAgainAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heap{}
		d := deleting(t, h)
		runFor(t, d, time.Minute)
		require.Zero(t, h.restarts)
		h.walked = walkAgain + time.Second
		runFor(t, d, time.Minute)
		require.Equal(t, 1, h.restarts)

		h.walked = walkAgain + time.Second
		d.walks[0].worked = walkAgain // it was hard work
		runFor(t, d, time.Minute)
		require.Equal(t, 1, h.restarts, "it has worked more than a twentieth of the time")
	})
}

func TestOtherPoliciesTakeEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heap{}
		d := deleting(t, h)
		policies := job.RetentionPolicies{Default: job.Retention{Dead: new(time.Hour)}}
		d.jobs.Retention.Set(policies)
		runFor(t, d, time.Second)
		require.Equal(t, policies, h.policies)
		require.Equal(t, 1, h.forgotten, "nothing is deleted by the other walk")
		d.jobs.Retention.Set(job.RetentionPolicies{})
		runFor(t, d, 10*sweepIdle)
		require.Equal(t, 2, h.forgotten)
	})
}

func TestAPortionGrowsOnlyByWhatItHasLearned(t *testing.T) {
	for _, c := range []struct {
		portion int
		done    int64
		took    time.Duration
		next    int
	}{
		{400, 400, 4 * time.Millisecond, 500},
		{1000, 1000, 15 * time.Millisecond, 1000},
		{2400, 2400, 5 * time.Millisecond, mostPortion},
		{2000, 100, time.Millisecond, 2000},
		{2000, 2000, 30 * time.Millisecond, 1000},
		{2000, 0, 30 * time.Millisecond, 1000},
		{2000, 2000, 60 * time.Millisecond, 250},
		{100, 100, time.Second, leastPortion},
		{100, 100, 0, 125},
	} {
		require.Equal(t, c.next, nextPortion(c.portion, c.done, c.took), "%+v", c)
	}
}

func TestRecordsAreDeletedInPortionsEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heap{acts: 2*recordsPortion + 1}
		d := deleting(t, h)
		runFor(t, d, 2*recordsEvery)
		require.NotZero(t, h.tidied, "logins")
		require.Equal(t, 2*recordsPortion+1, h.acts, "the audit log is kept")

		policies := d.jobs.Retention.Policies()
		policies.Audit = new(24 * time.Hour)
		d.jobs.Retention.Set(policies)
		before := h.tidied
		runFor(t, d, 2*recordsEvery)
		require.Zero(t, h.acts)
		require.Equal(t, 24*time.Hour, h.kept)
		require.LessOrEqual(t, h.tidied-before, 3)
	})
}
