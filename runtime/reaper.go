package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// reapBatch bounds one take-over of expired leases.
const reapBatch = 200

// reaper takes over expired leases and decides what becomes of their jobs. It
// runs in every orchestrator; there is no leader.
type reaper struct {
	store    Store
	settler  *settler
	log      *slog.Logger
	cfg      Config
	isGone   func(job.Worker) bool
	deadline time.Duration

	telemetry *telemetry
	spans     *spans.Tracer
}

func (r *reaper) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.reap(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("reaping failed; trying again", slog.Any("error", err))
		}
		pauseFor(ctx, jittered(r.cfg.reapInterval()))
	}
}

// reap discharges workers whose processes are gone, then settles every job
// whose lease has expired.
func (r *reaper) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := r.dischargeTheGone(ctx); err != nil {
		return err
	}
	for {
		began := time.Now()
		expired, err := r.store.Reap(ctx, reapBatch, r.cfg.Lease)
		r.telemetry.batch(opReap, len(expired), began, err)
		if err != nil {
			return err
		}
		for _, e := range expired {
			r.settle(e)
		}
		if len(expired) < reapBatch {
			return nil
		}
	}
}

// dischargeTheGone ends the leases of workers on this very system whose
// process is proven to be gone, so that their jobs need not wait for the
// leases to run out.
func (r *reaper) dischargeTheGone(ctx context.Context) error {
	neighbours, err := r.store.WorkersOnHost(ctx, r.cfg.Worker.Host, r.cfg.Worker.ID)
	if err != nil {
		return err
	}
	var gone []string
	for _, worker := range neighbours {
		if r.isGone(worker) {
			gone = append(gone, worker.ID)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	leases, err := r.store.ExpireWorkers(ctx, gone)
	if err != nil {
		return err
	}
	r.log.Warn("workers ended without signing off", slog.Any("workers", gone), slog.Int("leases", leases))
	return nil
}

func (r *reaper) settle(e job.Expired) {
	outcome := job.Outcome{
		Kind: job.LeaseExpired, Code: leaseExpired,
		Message: fmt.Sprintf("worker %s is alive but let the lease expire", e.Worker),
	}
	if e.WorkerGone {
		outcome = job.Outcome{
			Kind: job.Interrupted, Code: workerGone,
			Message: fmt.Sprintf("worker %s ended or fell silent during the attempt", e.Worker),
		}
	}
	r.telemetry.reapedFor(outcome.Code)
	standing := job.Standing{
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts,
		Interruptions: e.Interruptions, Crashes: e.Crashes, CancelRequested: e.CancelRequested,
	}
	told := r.spans.Reaped(&e, r.cfg.Worker.ID)
	lost := r.settler.decide(e.Lease, e.Type, standing, outcome).tracedBy(told)
	lost.trace, lost.lostBy = e.Trace, e.Worker
	r.settler.add(lost)
}
