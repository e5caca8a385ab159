package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// signOffTimeout bounds the last word to the database.
const signOffTimeout = 2 * time.Second

// drain lets running handlers finish for the drain period, then stops them
// and gives their jobs back. It returns when every attempt is settled, or is
// given up: then its lease is left to expire. Leases are renewed all the while,
// and none is waited for to run out.
func (r *Runtime) drain(abort context.Context) {
	r.settler.lapsing.close()
	if running, _ := r.held.counts(); running > 0 {
		r.cfg.Log.Info("draining", slog.Int("running", running), slog.Duration("drain", r.cfg.DrainTimeout))
	}
	patience, cancel := context.WithTimeout(abort, r.cfg.DrainTimeout)
	defer cancel()
	if !r.await(patience, r.held.idle, func(running, _ int) bool { return running == 0 }) {
		for _, a := range r.held.all() {
			a.stop(job.CancelShutdown)
		}
	}
	// A handler that ignores its cancel is killed after the grace; a database
	// that does not answer is not waited for longer than one try.
	last, cancel := context.WithTimeout(abort, r.cfg.KillGrace+settleTimeout)
	defer cancel()
	if !r.await(last, r.held.emptied, func(_, held int) bool { return held == 0 }) {
		running, held := r.held.counts()
		r.cfg.Log.Warn("leaving jobs to be recovered", slog.Int("running", running), slog.Int("held", held))
		r.endSettling()
	}
}

// await waits for the counts to be as wanted; it returns false when the
// context ends first.
func (r *Runtime) await(ctx context.Context, changed signal, wanted func(running, held int) bool) bool {
	for {
		if wanted(r.held.counts()) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return wanted(r.held.counts())
		}
	}
}

// signOff says that this worker has ended, so that nobody waits for its
// leases should it still hold any. No handler may be running: its job could
// be started elsewhere at once.
func (r *Runtime) signOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signOffTimeout)
	defer cancel()
	if _, err := r.store.ExpireWorkers(ctx, []string{r.cfg.Worker.ID}); err != nil {
		r.cfg.Log.Warn("could not sign off; the worker will be found to be gone", slog.Any("error", err))
	}
}
