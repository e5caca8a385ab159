package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// reapBatch bounds one take-over of expired leases.
	reapBatch = 200
	// reapUnseen is how often to look for them even if none was seen.
	reapUnseen = time.Minute
)

// reaper takes over expired leases and ends their attempts. It runs in every process that
// maintains; there is no leader.
type reaper struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
	path  *path
	// lost is raised when there may be expired leases.
	lost loop.Signal
}

func (r *reaper) run(ctx context.Context) {
	for r.lost.Wait(ctx, r.jobs.Pace.Stretched(job.RoleMaintenance, reapUnseen, mostReapIntervals)) {
		if err := r.reap(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("reaping failed; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(r.cfg.reapInterval()))
			r.lost.Raise()
		}
	}
}

// reap ends every attempt whose lease has expired.
func (r *reaper) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		began := time.Now()
		expired, err := r.store.Reap(ctx, reapBatch, r.cfg.Lease)
		r.jobs.Metrics.Batch(metrics.OpReap, len(expired), began, err)
		if err != nil {
			return err
		}
		for _, e := range expired {
			r.takeOver(e)
		}
		if len(expired) < reapBatch {
			return nil
		}
	}
}

func (r *reaper) takeOver(e job.Expired) {
	outcome := job.Outcome{
		Kind: job.LeaseExpired, Code: metrics.LeaseExpired,
		Message: fmt.Sprintf("worker %s is alive but let the lease expire", e.Worker),
	}
	if e.WorkerGone {
		outcome = job.Outcome{
			Kind: job.Interrupted, Code: metrics.WorkerGone,
			Message: fmt.Sprintf("worker %s ended or fell silent during the attempt", e.Worker),
		}
	}
	r.jobs.Metrics.Reaped(outcome.Code)
	r.path.takeOver(&ending{
		lease: e.Lease, jobType: e.Type, outcome: outcome, trace: &e.Trace, lostBy: e.Worker, done: lastSign(e),
		spans: r.jobs.Spans.Reaped(&e, r.cfg.Worker.ID),
		history: job.History{
			Attempt: e.Attempt, MaxAttempts: e.MaxAttempts,
			Interruptions: e.Interruptions, Crashes: e.Crashes, CancelRequested: e.CancelRequested,
		},
	})
}

// lastSign is when the worker of a lost attempt was last heard; unknown if that was before it
// claimed the job.
func lastSign(e job.Expired) job.SinceClaim {
	heard := e.HeartbeatAt.Sub(e.ClaimedAt)
	return job.SinceClaim{Time: max(heard, 0), Known: heard > 0}
}
