package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"time"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/direct"
	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/transfer"
)

const (
	// directConnections is enough for one client.
	directConnections = 4
	// lastHintsWithin bounds the sending of hints when a command is done.
	lastHintsWithin = 2 * time.Second
)

// connectDirect serves the API within the process, on the configured database. It
// starts the embedded PostgreSQL if that exists and does not run, unless hasty is set.
func (p *program) connectDirect(ctx context.Context, hasty bool) (*apiclient.Client, func(), error) {
	cfg, err := p.load()
	if err != nil {
		return nil, nil, err
	}
	if err := checkDirect(cfg, hasty); err != nil {
		return nil, nil, err
	}
	// The command prints its own errors, so the log needs nothing below them.
	log := slog.New(slog.DiscardHandler)
	if !hasty {
		log = newLog(config.Log{Level: "error", Format: cfg.Log.Format}, p.stderr)
	}
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	api, closeLedger, err := serveDirect(ctx, cfg, db, log)
	if err != nil {
		db.close(context.WithoutCancel(ctx))
		return nil, nil, err
	}
	return api, func() {
		closeLedger()
		db.close(context.WithoutCancel(ctx))
	}, nil
}

// checkDirect rejects a database that would have to be created first.
func checkDirect(c config.Config, hasty bool) error {
	if c.Database.URL != "" {
		return nil
	}
	if hasty {
		return errors.New("no database.url is set")
	}
	if _, err := os.Stat(c.Embedded.DataDir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database: database.url is not set, and %s does not exist; "+
			"`orchestrator serve` makes it", c.Embedded.DataDir)
	}
	return nil
}

func serveDirect(ctx context.Context, cfg config.Config, db *database, log *slog.Logger) (*apiclient.Client, func(), error) {
	if err := db.isOne(ctx); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(db.isCurrent(ctx), db.hasCell(ctx)); err != nil {
		return nil, nil, err
	}
	closed := db.isOpen(ctx)
	if closed != nil && !errors.Is(closed, transfer.ErrClosed) {
		return nil, nil, closed
	}
	ledger, err := store.Open(ctx, store.Config{
		URL: db.url.Reveal(), DirectURL: cfg.Database.DirectURL.Reveal(), MaxConnections: directConnections, Cell: db.cell,
		Replica: replicaOf(cfg.Database, log), // which only the doctor looks at
	})
	if err != nil {
		return nil, nil, err
	}
	retention, err := cfg.Retention.Policies()
	if err != nil {
		ledger.Close()
		return nil, nil, err
	}
	jobs, closeJobs, err := directJobs(ledger, db.cell, cfg.Jobs, retention, cfg.Events.Log(), log)
	if err != nil {
		ledger.Close()
		return nil, nil, err
	}
	var handler http.Handler = api.New(api.Config{
		Jobs: jobs, Operations: ledger, Rules: jobs.Service, Retention: jobs.Service, Bulk: jobs.Service, Schedules: jobs.Service, Workflows: jobs,
		Audit: ledger, Actor: directActor(), Cell: db.cell,
		Log: log, Version: thisBuild().Version, TraceLink: cfg.Tracing.TraceURL,
		MaxBodyBytes: cfg.Server.MaxBodyBytes, MaxBatchBytes: cfg.Server.MaxBatchBytes, RequestTimeout: cfg.Server.RequestTimeout,
	})
	if closed != nil {
		handler = api.ReadOnly(handler, closed.Error())
	}
	transport, stopServing := direct.Serve(handler, log)
	end := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastHintsWithin)
		defer cancel()
		stopServing()
		closeJobs(ctx)
		ledger.Close()
	}
	// The address is shown in errors only.
	client, err := apiclient.New(apiclient.Config{Server: "http://localhost", Transport: transport, Agent: agent()})
	if err != nil {
		end()
		return nil, nil, err
	}
	return client, end, nil
}

// directActor is who works on the database, for its audit log.
func directActor() string {
	me, err := user.Current()
	if err != nil {
		return "direct"
	}
	return "direct " + me.Username
}

// isCurrent returns an error unless the schema is the one this program was
// made for.
func (d *database) isCurrent(ctx context.Context) error {
	var has, newest int64
	err := d.withSQL(func(db *sql.DB) (err error) {
		has, newest, err = migrations.Compare(ctx, db)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("database %s: %w", d.url, err)
	case has < newest:
		return fmt.Errorf("the schema of the database is at version %d, and this program needs %d: "+
			"run `orchestrator migrate up`, or start `orchestrator serve`", has, newest)
	case has > newest:
		return fmt.Errorf("the schema of the database is at version %d, and this program knows %d: "+
			"use the program that the database was migrated with", has, newest)
	}
	return nil
}
