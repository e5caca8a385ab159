package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// expireBatch bounds one look at the jobs that expire.
	expireBatch = 200
	// expireAgain is when to look again at a job that should have ended, but was being moved
	// or claimed.
	expireAgain = 100 * time.Millisecond
)

// expirer cancels jobs that have not started by their time. It runs in every
// process that maintains.
type expirer struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
}

func (e *expirer) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := e.expire(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.Warn("jobs that expire could not be canceled; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		e.jobs.Expiry.Sleep(ctx, pause)
	}
}

// expire cancels the jobs whose time has come and returns how long to wait for the next one that
// is known of now.
func (e *expirer) expire(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		in, ok, err := e.store.NextExpiry(ctx)
		if err != nil {
			return 0, err
		}
		if !ok || in > 0 {
			return pauseUntil(in, ok), nil
		}
		began := time.Now()
		lapsed, entries, err := e.store.Expire(ctx, expireBatch)
		e.jobs.Metrics.Batch(metrics.OpExpire, entries, began, err)
		if err != nil {
			return 0, err
		}
		e.jobs.Lapsed(lapsed, began)
		if entries == 0 {
			return expireAgain, nil
		}
	}
}
