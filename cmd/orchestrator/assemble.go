package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/meter"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/client"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

const (
	// pluginsUpWithin is how long the API waits, before it listens, for
	// plugins to come up for the first time and declare their job types.
	pluginsUpWithin = 5 * time.Second
	// closePluginsWithin is how long plugins get to leave by themselves once
	// they have nothing more to do.
	closePluginsWithin = 3 * time.Second
)

// assembly is what serve runs: the ledger as the API sees it, and the worker
// with its plugins.
type assembly struct {
	jobs       api.Jobs
	operations api.Operations
	plugins    api.Plugins
	prometheus http.Handler
	observe    func(route, method string, status int, took time.Duration)
	tracer     trace.Tracer // nil for none
	// reload makes the handlers of another configuration the present ones.
	reload func(config.Config) error
	// run works until ctx ends, drains, and returns. When abort ends as well,
	// it gives up at once.
	run func(ctx, abort context.Context) error
	// close frees what run did not. It is called once run has returned, or
	// was given up. When abort ends, it waits for nothing more.
	close func(abort context.Context)
}

// assembler builds an assembly on a database whose schema is up to date.
type assembler func(ctx context.Context, cfg config.Config, url config.DatabaseURL, environ []string, log *slog.Logger) (*assembly, error)

// assembleBeside returns an assembler that has the command run as the warden of
// its handlers.
func assembleBeside(warden ...string) assembler {
	return func(ctx context.Context, cfg config.Config, url config.DatabaseURL, environ []string, log *slog.Logger) (*assembly, error) {
		return wire(ctx, cfg, url, environ, log, warden)
	}
}

// assemble is an assembler without a warden.
func assemble(ctx context.Context, cfg config.Config, url config.DatabaseURL, environ []string, log *slog.Logger) (*assembly, error) {
	return wire(ctx, cfg, url, environ, log, nil)
}

// wire puts store, plugins and runtime together.
func wire(ctx context.Context, cfg config.Config, url config.DatabaseURL, environ []string, log *slog.Logger, warden []string) (*assembly, error) {
	plugins, err := cfg.HostConfigs(environ)
	if err != nil {
		return nil, err
	}
	identity := runtime.NewWorker(cfg.Worker.ID)
	meters, err := meter.New(meter.Identity{Worker: identity.ID, Version: thisBuild().Version}, log)
	if err != nil {
		return nil, err
	}
	traces, err := startTracing(ctx, cfg.Tracing, environ, identity.ID, meters.Meter(), log)
	if err != nil {
		return nil, err
	}
	ledger, err := store.Open(ctx, store.Config{
		URL: url.Reveal(), MaxConnections: cfg.Database.MaxConnections, Tracer: traces.Tracer(),
	})
	if err != nil {
		closeTracing(traces, log)
		return nil, err
	}
	settings := host.DefaultSettings(socketDir(cfg.Plugins), log)
	settings.Cgroup, settings.Warden = cfg.Worker.PluginsCgroup, warden
	settings.DrainTimeout = max(cfg.Worker.DrainTimeout, closePluginsWithin)
	settings.Ledger, settings.Caps = acceptance{ledger}, cfg.Jobs.Caps()
	handlers, err := host.Start(ctx, settings, plugins)
	if err != nil {
		ledger.Close()
		closeTracing(traces, log)
		return nil, err
	}
	parts := &assembly{close: func(abort context.Context) {
		closePlugins(abort, handlers, log)
		closeConnections(abort, ledger.Close, log)
		closeTracing(traces, log)
	}}
	awaitPlugins(ctx, handlers)

	parts.prometheus, parts.observe, parts.tracer = meters.Handler(), meters.Request, traces.Tracer()
	worker, err := runtime.New(runtime.Config{
		Config: client.Config{
			PollInterval:       cfg.Worker.PollInterval,
			Resolve:            cfg.Jobs.Resolve,
			AcceptUnknownTypes: cfg.Jobs.AcceptUnknownTypes,
			Fast:               cfg.Jobs.Fast,
			Log:                log,
			Meter:              meters.Meter(),
			Tracer:             traces.Tracer(),
		},
		Worker:         identity,
		Concurrency:    cfg.Worker.Concurrency,
		Lease:          cfg.Worker.Lease,
		Prefetch:       cfg.Worker.Prefetch,
		DrainTimeout:   cfg.Worker.DrainTimeout,
		KillGrace:      cfg.Worker.KillGrace,
		ReportInterval: cfg.Worker.ReportInterval,
		CrashPolicy:    cfg.Worker.CrashPolicy,
		MaxCrashes:     cfg.Jobs.MaxCrashes,
		JobLog:         cfg.Log.Jobs,
	}, ledger, handlers)
	if err == nil {
		err = errors.Join(worker.Prepare(ctx), meters.Watch(meter.Sources{
			Plugins: handlers.Status, Pools: ledger.Stats, Ledger: ledger.Metrics, TypeLabel: worker.Metrics.TypeLabel,
		}))
	}
	if err != nil {
		parts.close(ctx)
		return nil, err
	}
	parts.jobs = jobs{worker.Client, ledger}
	parts.operations, parts.plugins = ledger, handlers
	parts.reload = func(next config.Config) error {
		next.Tracing = cfg.Tracing // what is not under plugins stays as it was
		plugins, err := next.HostConfigs(environ)
		if err != nil {
			return err
		}
		return handlers.Reload(plugins)
	}
	parts.run = func(ctx, abort context.Context) error {
		worker.Run(ctx, abort)
		return nil
	}
	return parts, nil
}

// awaitPlugins returns when every plugin has come up or failed once, so that
// a job submitted the moment the API listens finds its type known. A plugin
// that takes longer than pluginsUpWithin is not waited for.
func awaitPlugins(ctx context.Context, handlers *host.Host) {
	patience, cancel := context.WithTimeout(ctx, pluginsUpWithin)
	defer cancel()
	for {
		waiting := false
		for _, plugin := range handlers.Status() {
			waiting = waiting || (plugin.State == job.PluginStarting && plugin.Restarts == 0)
		}
		if !waiting {
			return
		}
		select {
		case <-handlers.Changed():
		case <-patience.Done():
			return
		}
	}
}

func closePlugins(abort context.Context, handlers *host.Host, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(abort, closePluginsWithin)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- handlers.Close(ctx) }()
	if err := await(abort, closed); err != nil {
		log.Warn("plugins were not closed in good order", "error", err)
	}
}

// closeConnections waits for statements under way, which a database that is stuck may
// never answer.
func closeConnections(abort context.Context, closeAll func(), log *slog.Logger) {
	closed := make(chan error, 1)
	go func() {
		closeAll()
		closed <- nil
	}()
	if err := await(abort, closed); err != nil {
		log.Warn("connections to the database were left open", "error", err)
	}
}

// socketDir is where the plugins' sockets go: short, since a socket's path
// must be, and the user's own, but passable for those who handlers run as.
func socketDir(handlers []config.Plugin) string {
	shared := slices.ContainsFunc(handlers, func(h config.Plugin) bool { return h.User != "" })
	base := os.Getenv("XDG_RUNTIME_DIR")
	if info, err := os.Stat(base); shared || base == "" || len(base) > 30 || err != nil || !info.IsDir() {
		base = "/tmp"
	}
	return filepath.Join(base, "holdfast-"+strconv.Itoa(os.Getuid()))
}
