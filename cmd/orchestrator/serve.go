package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
worker.drain_timeout to finish, and what remains is given back unharmed. A second
signal stops at once; jobs that were running are recovered from the database.

A database that does not answer yet is waited for, up to database.start_wait.
Meanwhile /healthz answers 200, and /readyz and all else 503.

At a SIGHUP the configuration is read again, and what it says under plugins
takes effect: a handler that differs is replaced while it runs. Nothing changes
when the file is missing or has no plugins section where there was one.`,
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
	if cfg.Source != "" {
		log.Info("configuration read", "file", cfg.Source)
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

	gate := api.NewGate("the server is starting")
	server := newServer(cfg.Server, gate, log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(limited(listener, cfg.Server, log)) }()
	defer func() { _ = server.Close() }()

	parts, db, err := p.start(drain, abort, cfg, gate, log)
	switch cause := context.Cause(drain); {
	case errors.Is(err, errNothingBegun):
		log.Info("stopped")
		return nil
	case err != nil && cause != nil:
		return cause
	case err != nil:
		return err
	}
	defer db.close(abort)
	defer func() { parts.close(abort) }()

	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	server.RegisterOnShutdown(stop)
	gate.Open(api.New(api.Config{
		Jobs: parts.jobs, Operations: parts.operations, Plugins: parts.plugins, Guard: guard, Log: log, Version: thisBuild().Version,
		MaxBodyBytes: cfg.Server.MaxBodyBytes, MaxBatchBytes: cfg.Server.MaxBatchBytes,
		MaxReceivingBytes: cfg.Server.MaxReceivingBytes, RequestTimeout: cfg.Server.RequestTimeout,
		Stopping: stopping.Done(),
		Observe:  parts.observe, Prometheus: parts.prometheus, Tracer: parts.tracer, TraceLink: cfg.Tracing.TraceURL,
	}))
	defer hangups.each((&reloads{program: p, parts: parts, log: log, start: cfg, present: cfg}).reload)()
	p.greet(listener.Addr(), &cfg.Security, log)
	return work(drain, abort, server, served, parts, db.ended, log)
}

// work runs jobs beside the server until drain ends or a part fails, and returns
// when both have stopped. The API stops first: requests under way still get their
// answer from a runtime that works.
func work(
	drain, abort context.Context, server *http.Server, served <-chan error,
	parts *assembly, databaseEnded <-chan struct{}, log *slog.Logger,
) error {
	running, stopRunning := context.WithCancel(context.WithoutCancel(drain))
	defer stopRunning()
	giveUp, stopNow := context.WithCancelCause(abort)
	defer stopNow(nil)

	ran := make(chan error, 1)
	go func() { ran <- parts.run(running, giveUp) }()

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
