package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// redeliverEvery is how often the follower looks for ends that could not be announced.
	redeliverEvery = 30 * time.Second
	// forgetEvery is how often old events are looked for.
	forgetEvery = time.Second
	// forgetBatch bounds the events that one statement deletes.
	forgetBatch = 5000
)

// follower tells those who wait for jobs that these have ended. It runs in every
// process that maintains; in the database, one of them works at a time.
type follower struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
	wake  loop.Signal // a followed job has ended
	// tryAt is when to look for undelivered ends next, and forgetAt when to look for old events.
	tryAt, forgetAt time.Time

	workflows *workflowSweep
	// canceling is where the next round goes on with workflows that are being canceled.
	canceling job.ID
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := errors.Join(f.follow(ctx), f.redeliver(ctx), f.forget(ctx), f.workflows.whenDue(ctx))
		pause := f.pause()
		if err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn("ended jobs could not be followed up; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		f.wake.Wait(ctx, pause)
	}
}

// pause is how long it has nothing to do unless it is woken.
func (f *follower) pause() time.Duration {
	pause := min(time.Until(f.tryAt), time.Until(f.workflows.next))
	if f.cfg.Events.On() {
		pause = min(pause, time.Until(f.forgetAt))
	}
	return max(pause, 0)
}

// follow does rounds until the inbox is empty.
func (f *follower) follow(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		began := time.Now()
		done, err := f.store.Follow(try, job.FollowPlan{
			Deliveries: f.jobs.DeliveryPlan(), Events: f.cfg.Events, CancelingAfter: f.canceling,
		})
		cancel()
		f.jobs.Metrics.Batch(metrics.OpFollow, len(done.Ended), began, err)
		if err != nil {
			return err
		}
		f.canceling = done.CancelingNext
		f.jobs.FollowedUp(done)
		f.complain(done.Delivered)
		if err := f.workflows.cancel(ctx, done.Canceling); err != nil {
			return err
		}
		more = done.More || len(done.Canceled) > 0
	}
	return nil
}

// redeliver tries again to announce ends that could not be announced.
func (f *follower) redeliver(ctx context.Context) error {
	if time.Now().Before(f.tryAt) {
		return nil
	}
	f.tryAt = time.Now().Add(f.jobs.Pace.Pause(job.RoleMaintenance, redeliverEvery))
	plan := f.jobs.DeliveryPlan()
	if plan.Type == nil {
		return nil
	}
	try, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	done, err := f.store.Redeliver(try, plan)
	if err == nil {
		f.jobs.FollowedUp(job.Following{Delivered: done})
		f.complain(done)
	}
	return err
}

func (f *follower) complain(done job.Delivered) {
	if done.GivenUp > 0 {
		f.cfg.Log.Error("callback URLs will never be told that jobs have ended",
			slog.Int("jobs", done.GivenUp), slog.String("reason", done.Reason))
	}
	if done.Failed > 0 {
		f.cfg.Log.Warn("callback URLs could not be told that jobs have ended; this is tried again",
			slog.Int("jobs", done.Failed), slog.String("reason", done.Reason))
	}
}

// forget deletes old events.
func (f *follower) forget(ctx context.Context) error {
	if !f.cfg.Events.On() || time.Now().Before(f.forgetAt) {
		return nil
	}
	f.forgetAt = time.Now().Add(f.jobs.Pace.Pause(job.RoleMaintenance, forgetEvery))
	for deleted := forgetBatch; deleted == forgetBatch && ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		var err error
		deleted, err = f.store.ForgetEvents(try, f.cfg.Events, forgetBatch)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
