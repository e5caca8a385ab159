package plugins

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// writeWithin bounds each statement.
	writeWithin = 10 * time.Second
	// lastWriteWithin bounds the last one, when the orchestrator ends.
	lastWriteWithin = 2 * time.Second
	// recordBatch is how many events one statement writes.
	recordBatch = 100
	// recordInterval is how often to look whether a burst is over.
	recordInterval = 10 * time.Second
	// KeepFor is how long events and commands are kept. They are deleted every tidyInterval,
	// tidyBatch at a time.
	KeepFor      = 30 * 24 * time.Hour
	tidyInterval = time.Hour
	tidyBatch    = 1000
)

// Store is where events are written.
type Store interface {
	// RecordPluginEvents writes events of a worker. One whose id is there already is left out.
	RecordPluginEvents(ctx context.Context, worker job.Worker, events []job.PluginEvent) error
	// ForgetPluginEvents deletes up to limit events and commands that are older.
	ForgetPluginEvents(ctx context.Context, olderThan time.Duration, limit int) (deleted int, err error)
}

// Recorder writes what the journal has to the database.
type Recorder struct {
	Journal *Journal
	Store   Store
	Worker  job.Worker
	Log     *slog.Logger
}

// Run writes until the context ends, and then once more.
func (r *Recorder) Run(ctx context.Context) {
	tidied := time.Now().Add(-tidyInterval) // an orchestrator that never lives long tidies too
	for r.Journal.added.Wait(ctx, loop.Jittered(recordInterval)) {
		if err := r.write(ctx, writeWithin); err != nil && ctx.Err() == nil {
			r.Log.Warn("plugin events could not be recorded; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
			r.Journal.added.Raise()
			continue
		}
		if time.Since(tidied) < tidyInterval {
			continue
		}
		if err := r.tidy(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("old plugin events could not be deleted; trying again", slog.Any("error", err))
			continue
		}
		tidied = time.Now()
	}
	if err := r.write(context.WithoutCancel(ctx), lastWriteWithin); err != nil {
		r.Log.Warn("the last plugin events could not be recorded", slog.Any("error", err))
	}
}

func (r *Recorder) write(ctx context.Context, within time.Duration) error {
	for {
		batch := r.Journal.take(recordBatch, time.Now())
		if len(batch) == 0 {
			return nil
		}
		try, cancel := context.WithTimeout(ctx, within)
		err := r.Store.RecordPluginEvents(try, r.Worker, batch)
		cancel()
		if err != nil {
			r.Journal.giveBack(batch)
			return err
		}
	}
}

func (r *Recorder) tidy(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, writeWithin)
		deleted, err := r.Store.ForgetPluginEvents(try, KeepFor, tidyBatch)
		cancel()
		if err != nil {
			return err
		}
		more = deleted >= tidyBatch
	}
	return nil
}
