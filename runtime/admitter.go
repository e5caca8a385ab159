package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// recountInterval is how often the slots of gates are compared with the jobs that hold
// them. They differ only after an orchestrator ran that knows nothing of gates.
const recountInterval = time.Hour

// parkAtOnce is how many jobs of a paused type one statement parks.
const parkAtOnce = 500

// longestRest bounds how long the admitter rests after a round that admitted jobs. It rests
// as long as the round took: meanwhile slots gather, and a job of a larger round, and then
// of larger claims, costs less.
const longestRest = 20 * time.Millisecond

// admitter lets parked jobs pass their gates. It runs in every process that maintains; in the
// database, one of them works at a time.
type admitter struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
	wake  loop.Signal // something has happened at a gate

	// woken are the rules for which every lane was named in the inbox. uncertain says that
	// this has to be done again whatever they are: at the start, and when a round has failed,
	// because it may still go on, with the rules of then.
	woken     *job.Rules
	uncertain bool
	recounted time.Time
}

func (a *admitter) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := a.admit(ctx)
		if err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("admitting jobs failed; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
			continue
		}
		a.wake.Wait(ctx, pause)
	}
}

// admit does rounds until there is nothing left to do, and returns when to look again.
func (a *admitter) admit(ctx context.Context) (time.Duration, error) {
	for ctx.Err() == nil {
		if err := a.prepare(ctx); err != nil {
			return 0, err
		}
		began := time.Now()
		done, err := a.round(ctx)
		if err != nil {
			return 0, err
		}
		if len(done.Admitted) > 0 {
			loop.Pause(ctx, min(time.Since(began), longestRest))
		}
		if !done.More {
			return min(pauseUntil(done.NextIn, done.NextIn > 0), time.Until(a.recounted.Add(recountInterval))), nil
		}
	}
	return 0, nil
}

// prepare counts the slots anew if it is time, and lets every lane be looked at if the
// rules have changed. Each process does so, the last one with the new rules: one that
// still had the old ones may have looked before.
func (a *admitter) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	rules := a.jobs.Rules()
	if time.Since(a.recounted) >= recountInterval {
		corrected, err := a.store.Recount(ctx, rules)
		if err != nil {
			return err
		}
		if corrected > 0 {
			a.cfg.Log.Warn("slots of gates were corrected; an orchestrator of a version without gates may have ended jobs", slog.Int("gates", corrected))
		}
		a.recounted = time.Now()
	}
	if a.uncertain || rules != a.woken && !rules.Equal(a.woken) {
		if err := a.parkPaused(ctx, rules.Paused(job.PauseType)); err != nil {
			return err
		}
		if _, err := a.store.WakeLanes(ctx); err != nil {
			return err
		}
	}
	a.woken, a.uncertain = rules, false
	return nil
}

// parkPaused takes the slots back of jobs of paused types that nobody has claimed.
func (a *admitter) parkPaused(ctx context.Context, types []string) error {
	if len(types) == 0 {
		return nil
	}
	for {
		parked, err := a.store.ParkReady(ctx, types, parkAtOnce)
		if err != nil || parked == 0 {
			return err
		}
	}
}

func (a *admitter) round(ctx context.Context) (job.Admission, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	began := time.Now()
	done, err := a.store.Admit(ctx, a.jobs.Rules())
	a.jobs.Metrics.Batch(metrics.OpAdmit, len(done.Admitted), began, err)
	if err != nil {
		a.uncertain = true
		return done, err
	}
	a.jobs.Admitted(done)
	return done, nil
}
