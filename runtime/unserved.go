package runtime

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// How often the monitor looks, and how long a job has waited when it counts.
const (
	unservedInterval = 30 * time.Second
	unservedAge      = time.Minute
)

// unservedMonitor notices jobs that wait too long. If this worker serves their type, it
// wakes the claimer; if not, it logs a warning.
type unservedMonitor struct {
	store   Store
	plugins Plugins
	log     *slog.Logger
	wake    *jobs.TypedSignal
	pace    *jobs.Pace
}

func (m *unservedMonitor) run(ctx context.Context) {
	for ctx.Err() == nil {
		loop.Pause(ctx, m.pace.Pause(job.RoleWorker, unservedInterval))
		m.look(ctx)
	}
}

func (m *unservedMonitor) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	waiting, err := m.store.Unserved(ctx, unservedAge)
	if err != nil {
		return // the other loops say what is wrong with the database
	}
	for _, backlog := range waiting {
		if m.serves(backlog.Type) {
			m.wake.Raise([]string{backlog.Type})
			continue
		}
		m.log.Warn("jobs wait for a handler that this orchestrator does not have",
			slog.String("job_type", backlog.Type), slog.Int("jobs", backlog.Jobs),
			slog.Duration("oldest", backlog.Oldest))
	}
}

func (m *unservedMonitor) serves(jobType string) bool {
	return slices.ContainsFunc(m.plugins.Pools(), func(pool job.Pool) bool {
		return !pool.Down && slices.Contains(pool.Types, jobType)
	})
}
