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

const (
	// eraseIdle is how often to look for erasures that other processes were asked for, or
	// have not finished.
	eraseIdle = 5 * time.Second
	// eraseBatch bounds one portion. Each job is written anew.
	eraseBatch = 500
	// restErasing is how many times as long as a portion the eraser rests after it.
	restErasing = 2
)

// eraser blanks the ended jobs of tenants on request. It runs in every process that maintains; an
// erasure is worked on by one at a time, and taken on by another where the last one ended.
type eraser struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
}

func (e *eraser) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := e.erase(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.Warn("jobs of a tenant could not be erased; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		e.jobs.Erasing.Sleep(ctx, pause)
	}
}

// erase does a portion, and returns how long to wait for the next one.
func (e *eraser) erase(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	began := time.Now()
	erased, more, err := e.store.EraseNext(ctx, eraseBatch)
	if err != nil || more {
		jobs := 0
		for _, n := range erased {
			jobs += int(n)
		}
		e.jobs.Metrics.Batch(metrics.OpErase, jobs, began, err)
	}
	e.jobs.Metrics.Disposed(metrics.Erased, erased)
	if err != nil || !more {
		return e.jobs.Pace.Pause(job.RoleMaintenance, eraseIdle), err
	}
	return restErasing * time.Since(began), nil
}
