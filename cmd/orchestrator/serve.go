package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API and run jobs",
		Long: `Serve the API and run jobs, until a SIGTERM or SIGINT. Then handlers get
worker.drain to finish, and what remains is given back unharmed. A second
signal stops at once; jobs that were running are recovered from the database.

At a SIGHUP the configuration is read again, and what it says under handlers
takes effect: a handler that differs is replaced while it runs. Nothing changes
when the file is missing or has no handlers section where there was one.`,
		Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return p.serve(c.Context()) },
	}
}

// serve runs the whole program. Every step can be interrupted by a signal,
// and is undone in reverse order.
func (p *program) serve(parent context.Context) error {
	hangups := watchHangups() // from the first: one during the start is acted on after it
	defer hangups.ignore()
	cfg, err := p.load()
	if err != nil {
		return err
	}
	defer raiseHeapFloor()()
	log := newLog(cfg.Log, p.stderr)
	if cfg.source != "" {
		log.Info("configuration read", "file", cfg.source)
	}
	drain, abort, release := watchSignals(parent, log)
	defer release()

	listener, err := listen(drain, cfg.Server.Address)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	guard, err := p.guardFor(cfg, listener.Addr(), log)
	if err != nil {
		return err
	}

	parts, db, err := p.start(drain, abort, cfg, log)
	if err != nil {
		if cause := context.Cause(drain); cause != nil {
			return cause
		}
		return err
	}
	defer db.close(abort)
	defer func() { parts.close(abort) }()

	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	handler := api.New(api.Config{
		Jobs: parts.jobs, Operations: parts.operations, Plugins: parts.plugins, Guard: guard, Log: log, Version: thisBuild().Version,
		MaxBodyBytes: cfg.Server.MaxBodyBytes, MaxBatchBytes: cfg.Server.MaxBatchBytes,
		MaxReceivingBytes: cfg.Server.MaxReceivingBytes, RequestTimeout: cfg.Server.RequestTimeout,
		Stopping: stopping.Done(),
		Observe:  parts.observe, Prometheus: parts.prometheus, Tracer: parts.tracer, TraceLink: cfg.Tracing.Link,
	})
	defer hangups.each((&reloads{program: p, parts: parts, log: log, start: cfg, present: cfg}).reload)()
	server := newServer(cfg.Server, handler, log)
	server.RegisterOnShutdown(stop)
	p.greet(listener.Addr(), &cfg.Security, log)
	return work(drain, abort, limited(listener, cfg.Server, log), server, parts, db.ended, log)
}

// start opens the database, brings its schema up to date, and assembles what
// works on it. When it fails after abort has ended, or abort ends then, the
// database is closed at once.
func (p *program) start(ctx, abort context.Context, cfg config, log *slog.Logger) (*assembly, *database, error) {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	log.Info("database", "url", db.url)
	applied, err := db.migrate(ctx)
	if err != nil {
		db.close(abort)
		return nil, nil, err
	}
	if applied > 0 {
		log.Info("schema brought up to date", "migrations", applied)
	}
	parts, err := p.assemble(ctx, cfg, db.url, p.environ, log)
	if err != nil {
		db.close(abort)
		return nil, nil, err
	}
	return parts, db, nil
}

// work serves and runs jobs until drain ends or a part fails, and returns when
// both have stopped. The API stops first: requests under way still get their
// answer from a runtime that works.
func work(
	drain, abort context.Context, listener net.Listener, server *http.Server,
	parts *assembly, databaseEnded <-chan struct{}, log *slog.Logger,
) error {
	running, stopRunning := context.WithCancel(context.WithoutCancel(drain))
	defer stopRunning()
	giveUp, stopNow := context.WithCancelCause(abort)
	defer stopNow(nil)

	ran := make(chan error, 1)
	go func() { ran <- parts.run(running, giveUp) }()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var failure error
	select {
	case <-drain.Done():
		log.Info("stopping: running jobs may finish; a second signal stops at once")
	case err := <-served:
		failure = fmt.Errorf("serve HTTP: %w", err)
	case err := <-ran:
		ran <- err
		failure = errors.New("the worker has stopped")
	case <-databaseEnded:
		failure = errors.New("the embedded PostgreSQL has ended")
		stopNow(failure)
	}
	shutDown(giveUp, server, log)
	stopRunning()
	if err := awaitRun(giveUp, ran); err != nil {
		return err
	}
	if failure == nil {
		log.Info("stopped")
	}
	return failure
}

// awaitRun waits for the worker to drain. One that was told to give up has failed
// for that reason.
func awaitRun(giveUp context.Context, ran <-chan error) error {
	err := await(giveUp, ran)
	if giveUp.Err() != nil {
		return context.Cause(giveUp)
	}
	return err
}

// await waits for an end, or not much longer than it was told to give up, which is
// the error then.
func await(giveUp context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-giveUp.Done():
	}
	late := time.NewTimer(giveUpWithin)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return context.Cause(giveUp)
	}
}
