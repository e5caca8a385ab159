package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// ageTimeout bounds one round of ageing.
const ageTimeout = time.Minute

// ager raises the priority of jobs that have waited long. It runs in every process that maintains;
// the database lets one of them work at a time.
type ager struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
}

func (a *ager) run(ctx context.Context) {
	if a.cfg.Ageing == 0 {
		return
	}
	// Jobs wait at most a tenth longer than they should.
	interval := min(max(a.cfg.Ageing/10, 100*time.Millisecond), 30*time.Second)
	for ctx.Err() == nil {
		loop.Pause(ctx, loop.Jittered(interval))
		if err := a.round(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("jobs that wait could not be aged; trying again", slog.Any("error", err))
		}
	}
}

func (a *ager) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	rules := a.jobs.Rules()
	_, everything := rules.Pause(job.PauseAll, "")
	raised, err := a.store.Age(ctx, a.cfg.Ageing, func(jobType string) bool {
		_, paused := rules.Pause(job.PauseType, jobType)
		return paused || everything
	})
	if len(raised) == 0 {
		return err
	}
	a.cfg.Log.Debug("raised the priority of jobs that have waited long", slog.Int("jobs", len(raised)))
	a.jobs.Hints.Announce(job.JobsReady)
	for _, one := range raised {
		if one.Gated {
			a.jobs.GatesChanged()
			break
		}
	}
	return err
}
