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
	// fingerprintInterval is how often to look for dead letters without a fingerprint. Only
	// earlier orchestrators make them.
	fingerprintInterval = 10 * time.Second
	// fingerprintBatch bounds one look.
	fingerprintBatch = 500
)

// fingerprinter fills in the fingerprints of dead letters that an earlier orchestrator has
// buried. It runs in every process that maintains.
type fingerprinter struct {
	store Store
	pace  *jobs.Pace
	log   *slog.Logger
}

func (f *fingerprinter) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.fill(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("fingerprints of dead letters could not be filled in; trying again", slog.Any("error", err))
		}
		loop.Pause(ctx, f.pace.Pause(job.RoleMaintenance, fingerprintInterval))
	}
}

func (f *fingerprinter) fill(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		found, err := f.store.Fingerprint(try, fingerprintBatch)
		cancel()
		if err != nil {
			return err
		}
		more = found == fingerprintBatch
	}
	return nil
}
