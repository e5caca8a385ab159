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

// promoteBatch bounds one move of due jobs to the ready list.
const promoteBatch = 500

// scheduler queues jobs that have become due. It runs in every process that maintains.
type scheduler struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
}

func (s *scheduler) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := s.promote(ctx)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("promoting due jobs failed; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		s.jobs.Due.Sleep(ctx, pause)
	}
}

// promote queues what is due and returns how long to wait for the next job that is known of now.
func (s *scheduler) promote(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		began := time.Now()
		moved, err := s.store.Promote(ctx, promoteBatch)
		s.jobs.Metrics.Batch(metrics.OpPromote, moved.Ready+moved.Parked, began, err)
		if err != nil {
			return 0, err
		}
		if moved.Ready > 0 {
			s.jobs.Hints.Announce(job.JobsReady)
		}
		if moved.Parked > 0 {
			s.jobs.GatesChanged()
		}
		if moved.Ready+moved.Parked < promoteBatch {
			break
		}
	}
	due, scheduled, err := s.store.NextDue(ctx)
	if err != nil {
		return 0, err
	}
	return pauseUntil(due, scheduled), nil
}
