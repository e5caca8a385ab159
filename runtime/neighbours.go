package runtime

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// neighbours are the processes on this system, whose process ids this one can check. Every
// worker looks after them, as reapers may be on other systems.
type neighbours struct {
	cfg    Config
	store  Store
	isGone func(job.Worker) bool
}

// run is for a process without a reaper, which does the same before it reaps.
func (n *neighbours) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.look(ctx); err != nil && ctx.Err() == nil {
			n.cfg.Log.Warn("workers on this system could not be looked after; trying again", slog.Any("error", err))
		}
		loop.Pause(ctx, loop.Jittered(n.cfg.reapInterval()))
	}
}

func (n *neighbours) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return n.expireTheGone(ctx)
}

// expireTheGone ends the leases of workers on this system whose process is certainly
// gone, so that their jobs do not wait for the leases to run out.
func (n *neighbours) expireTheGone(ctx context.Context) error {
	found, err := n.store.WorkersOnHost(ctx, n.cfg.Worker.Host, n.cfg.Worker.ID)
	if err != nil {
		return err
	}
	var gone []string
	for _, worker := range found {
		if n.isGone(worker) {
			gone = append(gone, worker.ID)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	leases, err := n.store.ExpireWorkers(ctx, gone)
	if err != nil {
		return err
	}
	n.cfg.Log.Warn("workers ended without signing off", slog.Any("workers", gone), slog.Int("leases", leases))
	return nil
}
