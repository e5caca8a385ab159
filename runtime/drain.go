package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// signOffTimeout bounds the last write to the database.
const signOffTimeout = 2 * time.Second

// drain ends the attempts of a worker that shuts down.
type drain struct {
	cfg      Config
	store    Store
	inFlight *inFlight
}

// run lets running handlers finish within Config.DrainTimeout, then stops them and
// releases their jobs. It returns true when every attempt is settled, and false when it
// has given up: then the leases expire. Leases are renewed all the while.
func (d drain) run(abort context.Context) (settled bool) {
	if running, _ := d.inFlight.counts(); running > 0 {
		d.cfg.Log.Info("draining", slog.Int("running", running), slog.Duration("drain", d.cfg.DrainTimeout))
	}
	patience, cancel := context.WithTimeout(abort, d.cfg.DrainTimeout)
	defer cancel()
	if !d.await(patience, d.inFlight.idle, func(running, _ int) bool { return running == 0 }) {
		for _, a := range d.inFlight.all() {
			a.stop(job.CancelShutdown)
		}
	}
	// A handler that ignores its cancel is killed after the grace. A database that does
	// not answer gets one try.
	last, cancel := context.WithTimeout(abort, d.cfg.KillGrace+settleTimeout)
	defer cancel()
	if !d.await(last, d.inFlight.emptied, func(_, held int) bool { return held == 0 }) {
		running, held := d.inFlight.counts()
		d.cfg.Log.Warn("leaving jobs to be recovered", slog.Int("running", running), slog.Int("held", held))
		return false
	}
	return true
}

// await returns true when the counts are as wanted, and false when the context ends
// first.
func (d drain) await(ctx context.Context, changed loop.Signal, wanted func(running, held int) bool) bool {
	for {
		if wanted(d.inFlight.counts()) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return wanted(d.inFlight.counts())
		}
	}
}

// signOff says that this worker has ended, so that nobody waits for leases that it may
// still hold. No handler may be running: its job could be started elsewhere at once.
func (d drain) signOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signOffTimeout)
	defer cancel()
	if _, err := d.store.ExpireWorkers(ctx, []string{d.cfg.Worker.ID}); err != nil {
		d.cfg.Log.Warn("could not sign off; the worker will be found to be gone", slog.Any("error", err))
	}
}
