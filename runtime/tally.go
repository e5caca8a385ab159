package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

const (
	// rollUpInterval is how often tallies are rolled up into their totals: rarely enough
	// to cost nothing, and often enough that the inbox stays small.
	rollUpInterval = 5 * time.Second
	// rollUpBatch bounds one roll-up.
	rollUpBatch = 5000
	// ageInterval is how often the recent past is made coarser.
	ageInterval = time.Minute
)

// tallyRollUp rolls up the tallies. It runs in every process that maintains; the database lets one
// of them roll up at a time.
type tallyRollUp struct {
	store Store
	pace  *jobs.Pace
	log   *slog.Logger
	aged  time.Time
}

func (t *tallyRollUp) run(ctx context.Context) {
	for ctx.Err() == nil {
		loop.Pause(ctx, t.pace.Pause(job.RoleMaintenance, rollUpInterval))
		if err := t.rollUp(ctx); err != nil && ctx.Err() == nil {
			t.log.Warn("tallies could not be rolled up; trying again", slog.Any("error", err))
		}
	}
}

func (t *tallyRollUp) rollUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		rolledUp, err := t.store.RollUpTallies(ctx, rollUpBatch)
		if err != nil {
			return err
		}
		if rolledUp < rollUpBatch {
			break
		}
	}
	if time.Since(t.aged) < ageInterval {
		return nil
	}
	t.aged = time.Now()
	return t.store.AgeTallies(ctx)
}
