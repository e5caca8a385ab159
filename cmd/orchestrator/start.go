package main

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

// start opens the database, waits until it can be used, brings its schema up to
// date, and assembles what works on it. Handlers are launched last, so none runs
// while the database is waited for. The error is errNothingBegun when ctx ended
// during that wait. When it fails after abort has ended, or abort ends then, the
// database is closed at once.
func (p *program) start(ctx, abort context.Context, cfg config.Config, gate *api.Gate, log *slog.Logger) (*assembly, *database, error) {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	log.Info("database", "url", db.url)
	waits := patience{setting: "database.start_wait", log: log, waiting: func() { gate.Wait("the server is waiting for its database") }}
	if !db.embedded { // which has answered already
		waits.bound = cfg.Database.StartWait
	}
	var parts *assembly
	err = waits.until(ctx, db.reach, func(ctx context.Context) (err error) {
		gate.Wait("the server is starting")
		parts, err = p.build(ctx, cfg, db, log)
		return err
	})
	if err != nil {
		db.close(abort)
		return nil, nil, err
	}
	return parts, db, nil
}

// build brings the schema up to date and assembles what works on it.
func (p *program) build(ctx context.Context, cfg config.Config, db *database, log *slog.Logger) (*assembly, error) {
	applied, err := db.migrate(ctx)
	if err != nil {
		return nil, err
	}
	if applied > 0 {
		log.Info("schema brought up to date", "migrations", applied)
	}
	return p.assemble(ctx, cfg, db.url, p.environ, log)
}
