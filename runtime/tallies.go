package runtime

import (
	"context"
	"log/slog"
	"time"
)

const (
	// foldInterval is how often tallies are folded into their totals: rarely
	// enough to cost nothing, and often enough that the inbox stays small.
	foldInterval = 5 * time.Second
	// foldBatch bounds one fold.
	foldBatch = 5000
	// ageInterval is how often the recent past is made coarser.
	ageInterval = time.Minute
)

// folder keeps the tallies of what has happened in order. It runs in every
// orchestrator; the database lets one of them fold at a time.
type folder struct {
	store Store
	log   *slog.Logger
	aged  time.Time
}

func (f *folder) run(ctx context.Context) {
	for ctx.Err() == nil {
		pauseFor(ctx, jittered(foldInterval))
		if err := f.fold(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("tallies could not be folded; trying again", slog.Any("error", err))
		}
	}
}

func (f *folder) fold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		folded, err := f.store.RollUpTallies(ctx, foldBatch)
		if err != nil {
			return err
		}
		if folded < foldBatch {
			break
		}
	}
	if time.Since(f.aged) < ageInterval {
		return nil
	}
	f.aged = time.Now()
	return f.store.AgeTallies(ctx)
}
