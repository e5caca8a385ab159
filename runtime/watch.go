package runtime

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// How often the watch looks, and how long a job may wait before it does.
const (
	watchInterval = 30 * time.Second
	watchAge      = time.Minute
)

// watch notices jobs that are left pending too long. Where we serve their
// type the claimer is woken; where we do not, it is said so.
type watch struct {
	store    Store
	handlers Plugins
	log      *slog.Logger
	wake     func()
}

func (w *watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		pauseFor(ctx, jittered(watchInterval))
		w.look(ctx)
	}
}

func (w *watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	waiting, err := w.store.Unserved(ctx, watchAge)
	if err != nil {
		return // the other loops say what is wrong with the database
	}
	for _, backlog := range waiting {
		if w.serves(backlog.Type) {
			w.wake()
			continue
		}
		w.log.Warn("jobs wait for a handler that this orchestrator does not have",
			slog.String("job_type", backlog.Type), slog.Int("jobs", backlog.Jobs),
			slog.Duration("oldest", backlog.Oldest))
	}
}

func (w *watch) serves(jobType string) bool {
	return slices.ContainsFunc(w.handlers.Pools(), func(pool job.Pool) bool {
		return !pool.Down && slices.Contains(pool.Types, jobType)
	})
}
