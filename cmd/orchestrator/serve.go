package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *program) serveCommand() *cobra.Command {
	var roles []string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API and run jobs",
		Long: `Serve the API and run jobs, until a SIGTERM or SIGINT. Running jobs then get
worker.drain_timeout to finish; the rest is released, unharmed. A second signal
stops at once, and the jobs that were running are recovered from the database.

With --role, do only a part: api serves the API and the web UI; worker runs plugins
and jobs; maintenance queues what becomes due, takes over from lost workers, fires
schedules and deletes. All processes that share a database need all three between them.

A database that does not answer yet is waited for, up to database.start_wait.
Meanwhile /healthz answers 200 and every other path 503.

SIGHUP reads the configuration again and applies its sections plugins, limits,
schedules and retention: plugins that changed are replaced while they run. Nothing changes if the file is
missing, or if it no longer has a plugins section.`,
		Args: command.NoArguments,
		Example: `  orchestrator serve
  orchestrator serve --role api
  orchestrator serve --role worker,maintenance`,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("role") {
				if _, err := job.ParseRoles(roles); err != nil {
					return usageError{fmt.Errorf("--role: %w", err)}
				}
				p.sets = append(p.sets, "roles="+strings.Join(roles, ","))
			}
			defer raiseHeapFloor()()
			return p.serve(c.Context())
		},
	}
	c.Flags().StringSliceVar(&roles, "role", job.AllRoles().Names(), "what to do, as in the key roles, which it overrides: any of `ROLE`s api, worker, maintenance")
	return c
}

// serve runs the whole program, top to bottom. A signal can interrupt every step;
// the steps are undone in reverse order. A process may do it several times at once.
func (p *program) serve(parent context.Context) error {
	hangups := watchHangups() // from the beginning: a SIGHUP during the start takes effect after it
	defer hangups.ignore()
	cfg, err := p.load()
	if err != nil {
		return err
	}
	log := inCell(newLog(cfg.Log, p.stderr), cfg.Database.Cell())
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
	routes := parts.api
	routes.Guard, routes.Log, routes.Version, routes.Stopping = guard, log, thisBuild().Version, stopping.Done()
	routes.MaxBodyBytes, routes.MaxBatchBytes = cfg.Server.MaxBodyBytes, cfg.Server.MaxBatchBytes
	routes.MaxReceivingBytes, routes.RequestTimeout = cfg.Server.MaxReceivingBytes, cfg.Server.RequestTimeout
	routes.TraceLink = cfg.Tracing.TraceURL
	routes.NoUI = !cfg.UI.Enabled
	reloaded := &reloads{program: p, parts: parts, log: log, start: cfg, present: cfg}
	routes.Settings = reloaded.settings
	if routes.Roles.Has(job.RoleAPI) {
		gate.Open(api.New(routes))
	} else {
		gate.Open(api.NewProbes(routes))
	}
	defer hangups.each(reloaded.reload)()
	p.greet(listener.Addr(), &cfg.Security, routes.Roles, log)
	return work(drain, abort, server, served, parts, db.ended, log)
}

// start opens the database, waits until it is usable, migrates it, and assembles
// what works on it. Plugins start last, so none runs during the wait. The error is
// errNothingBegun when ctx ended during the wait. On failure it closes the database,
// at once if abort has ended.
func (p *program) start(ctx, abort context.Context, cfg config.Config, gate *api.Gate, log *slog.Logger) (*assembly, *database, error) {
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	log.Info("database", "url", db.url)
	if cfg.Database.ReplicaURL != "" {
		log.Info("replica of the database", "url", cfg.Database.ReplicaURL)
	}
	waits := patience{setting: "database.start_wait", log: log, waiting: func() { gate.Wait("the server is waiting for its database") }}
	if !db.embedded { // an embedded one has answered already
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

// build migrates the database and assembles what works on it.
func (p *program) build(ctx context.Context, cfg config.Config, db *database, log *slog.Logger) (*assembly, error) {
	if err := db.isOne(ctx); err != nil {
		return nil, err
	}
	done, err := db.migrate(ctx)
	if err != nil {
		return nil, err
	}
	if done.migrations > 0 {
		log.Info("schema brought up to date", "migrations", done.migrations)
	}
	if done.settings > 0 {
		log.Info("the database user was given the settings of sessions; let the pooler open new connections if it has any",
			"settings", done.settings)
	}
	if _, some := done.cell.Number(); some {
		log.Info("the database has become this cell")
	}
	return p.assemble(ctx, cfg, db.url, p.environ, log)
}

// work runs jobs beside the server until drain ends or a part fails, and returns
// when both have stopped. The API stops first, so that requests in progress get
// their answers from a worker that still runs.
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

// awaitRun waits for the worker to drain. If the worker had to give up, the error is
// the reason for that.
func awaitRun(giveUp context.Context, ran <-chan error) error {
	err := await(giveUp, ran)
	if giveUp.Err() != nil {
		return context.Cause(giveUp)
	}
	return err
}

// await waits for ended. Once giveUp ends it waits for giveUpWithin at most, and then
// returns the cause.
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

// heapFloor is the least that the heap grows between two collections, in bytes. A
// worker keeps little and discards much: by default Go would collect every few
// megabytes, which took a fifth of the worker's CPU. With 32 MB, a backlog costs the same
// CPU, and takes 15 MB more.
const heapFloor = 16 << 20

// raiseHeapFloor sets that floor until release is called. It allocates memory that
// the collector counts but nobody touches, so it costs no memory. A higher GOGC would
// also multiply what large requests may keep.
func raiseHeapFloor() (release func()) {
	untouched := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(untouched) }
}
