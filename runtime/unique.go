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
	// tidyInterval is how often to look for the keys of unique jobs that keep nobody out
	// any more. Nobody waits for that: a submission takes over a key that is free.
	tidyInterval = 10 * time.Second
	// tidyBatch bounds one look.
	tidyBatch = 2000
	// tidyMany is how many deleted keys of a batch make it worth to go on at once.
	tidyMany = tidyBatch / 10
)

// uniqueTidier deletes the keys of unique jobs that keep nobody out any more. It runs in
// every process that maintains; the database lets one of them work at a time.
type uniqueTidier struct {
	store Store
	pace  *jobs.Pace
	log   *slog.Logger
	after []byte // the last key that it has looked at
}

func (u *uniqueTidier) run(ctx context.Context) {
	for ctx.Err() == nil {
		loop.Pause(ctx, u.pace.Pause(job.RoleMaintenance, tidyInterval))
		if err := u.tidy(ctx); err != nil && ctx.Err() == nil {
			u.log.Warn("keys of unique jobs could not be deleted; trying again", slog.Any("error", err))
		}
	}
}

func (u *uniqueTidier) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		next, deleted, err := u.store.TidyUnique(ctx, u.after, tidyBatch)
		if err != nil {
			return err
		}
		u.after = next
		if deleted < tidyMany {
			return nil
		}
	}
}
