package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/resolve"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/meter"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/events"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// assembly is what serve runs: the ledger as the API sees it, and the loops of the
// process's roles, with the plugins if it is a worker.
type assembly struct {
	// api has the parts that the API serves. The caller adds how it serves them.
	api api.Config
	// reload replaces the plugins, the limits and the retention by those of another configuration.
	reload func(config.Config) error
	// run works until ctx ends, then drains and returns. When abort ends as well, it
	// gives up at once.
	run func(ctx, abort context.Context) error
	// close frees everything. Call it once run has returned or was given up. When
	// abort ends, it stops waiting.
	close func(abort context.Context)
}

// assembler builds an assembly on a database whose schema is current.
type assembler func(ctx context.Context, cfg config.Config, url config.DatabaseURL, environ []string, log *slog.Logger) (*assembly, error)

// assemble is the assembler of the real program.
func assemble(ctx context.Context, cfg config.Config, url config.DatabaseURL, environ []string, log *slog.Logger) (*assembly, error) {
	roles, err := job.ParseRoles(cfg.Roles)
	if err != nil {
		return nil, err
	}
	retention, err := cfg.Retention.Policies()
	if err != nil {
		return nil, err
	}

	cell := cfg.Database.Cell()
	// Telemetry first: everything else reports to it.
	identity := runtime.NewWorker(cfg.Worker.ID, roles)
	meters, err := meter.New(meter.Identity{Worker: identity.ID, Version: thisBuild().Version, Cell: cell}, log)
	if err != nil {
		return nil, err
	}
	traces, err := startTracing(ctx, cfg.Tracing, environ, identity.ID, cell, meters.Meter(), log)
	if err != nil {
		return nil, err
	}

	ledger, err := store.Open(ctx, store.Config{
		URL: url.Reveal(), DirectURL: cfg.Database.DirectURL.Reveal(), MaxConnections: cfg.Database.MaxConnections, Tracer: traces.Tracer(),
		Cell: cell, Replica: replicaOf(cfg.Database, log),
	})
	if err != nil {
		closeTracing(traces, log)
		return nil, err
	}
	if err := ledger.FollowReplica(ctx); err != nil {
		ledger.Close()
		closeTracing(traces, log)
		return nil, fmt.Errorf("database.replica_url: %w: it must lead to a standby of the server of database.url, and to the same database there", err)
	}

	var working *crew // nil without the role of a worker
	if roles.Has(job.RoleWorker) {
		if working, err = startCrew(ctx, cfg, environ, ledger, identity, log); err != nil {
			ledger.Close()
			closeTracing(traces, log)
			return nil, err
		}
	}
	closeAll := func(abort context.Context) {
		working.close(abort)
		closeConnections(abort, ledger.Close, log)
		closeTracing(traces, log)
	}

	resolver := resolve.New(log, cell)
	worker, err := runtime.New(runtime.Config{
		Config: jobs.Config{
			PollInterval:       cfg.Worker.PollInterval,
			Resolve:            cfg.Jobs.Resolve,
			AcceptUnknownTypes: cfg.Jobs.AcceptUnknownTypes,
			Accept:             accepting(resolver),
			Fast:               cfg.Jobs.Fast,
			Retention:          retention,
			CallbackURL:        cfg.Jobs.CallbackURL,
			Events:             cfg.Events.Log(),
			Cell:               cell,
			Log:                log,
			Meter:              meters.Meter(),
			Spans:              traces.Exporter(),
		},
		Worker:         identity,
		Concurrency:    cfg.Worker.Concurrency,
		Lease:          cfg.Worker.Lease,
		Prefetch:       cfg.Worker.Prefetch,
		DrainTimeout:   cfg.Worker.DrainTimeout,
		KillGrace:      cfg.Worker.KillGrace,
		ReportInterval: cfg.Worker.ReportInterval,
		Ageing:         cfg.Worker.Ageing,
		CrashPolicy:    cfg.Worker.CrashPolicy,
		MaxCrashes:     cfg.Jobs.MaxCrashes,
		JobLog:         cfg.Log.Jobs,
	}, ledger, working.plugins())
	if err == nil {
		err = errors.Join(syncLimits(ctx, cfg, worker.Service), syncSchedules(ctx, cfg, worker.Service), worker.Prepare(ctx), meters.Watch(meter.Sources{
			Plugins: working.status, Pools: ledger.Stats, Replica: ledger.Replica, Ledger: ledger.Metrics, TypeLabel: worker.Metrics.TypeLabel,
		}))
	}
	if err != nil {
		closeAll(ctx)
		return nil, err
	}

	hub := events.New(events.Config{
		Poll: cfg.Worker.PollInterval, Wake: worker.Hints.Heard(job.EventsRecorded), MaxStreams: cfg.Events.MaxStreams, Log: log,
	}, ledger)
	if err := worker.Metrics.ObserveStreams(hub.Streams); err != nil {
		closeAll(ctx)
		return nil, err
	}
	routes := api.Config{
		Jobs: apiJobs{worker.Service, ledger}, Operations: ledger, Rules: worker.Service, Retention: worker.Service, Bulk: worker.Service, Schedules: worker.Service,
		Workflows: apiJobs{worker.Service, ledger}, AllPlugins: allPlugins{ledger, worker.Hints}, Resolver: resolver,
		Logins: ledger, Audit: ledger, Cell: cell, Roles: roles,
		Prometheus: meters.Handler(), Observe: meters.Request, Tracer: traces.Tracer(),
	}
	if working != nil {
		routes.Plugins = working.host
	}
	if cfg.Events.On() {
		routes.Events, routes.CutOff = hub, worker.Metrics.CutOff
	}
	return &assembly{
		api: routes,
		reload: func(next config.Config) error {
			next.Tracing = cfg.Tracing // a reload does not change it
			retention, err := next.Retention.Policies()
			if err != nil {
				return err
			}
			if err := working.reload(next, environ); err != nil {
				return err
			}
			syncing, cancel := context.WithTimeout(context.Background(), syncLimitsWithin)
			defer cancel()
			if err := syncLimits(syncing, next, worker.Service); err != nil {
				return fmt.Errorf("the plugins were reloaded, but not the limits: %w", err)
			}
			if err := syncSchedules(syncing, next, worker.Service); err != nil {
				return fmt.Errorf("the plugins and limits were reloaded, but not the schedules: %w", err)
			}
			worker.Retention.Set(retention)
			return nil
		},
		run: func(ctx, abort context.Context) error {
			following, stop := context.WithCancel(context.WithoutCancel(ctx))
			var beside sync.WaitGroup
			if roles.Has(job.RoleAPI) {
				beside.Go(func() { hub.Run(following) })
			}
			beside.Go(func() { working.run(ctx, following, worker.Service) })
			worker.Run(ctx, abort)
			stop()
			beside.Wait()
			return nil
		},
		close: closeAll,
	}, nil
}

// replicaOf says where reads may go that may be a little old.
func replicaOf(d config.Database, log *slog.Logger) postgres.ReplicaConfig {
	return postgres.ReplicaConfig{URL: d.ReplicaURL.Reveal(), MaxLag: d.ReplicaMaxLag, Log: log}
}

// syncLimitsWithin bounds the writing of limits and schedules at a reload.
const syncLimitsWithin = 10 * time.Second

// syncLimits writes the limits of the configuration, if it has such a section: without
// one, those of other orchestrators stay.
func syncLimits(ctx context.Context, cfg config.Config, service *jobs.Service) error {
	if !cfg.HasLimits {
		return nil
	}
	limits, err := cfg.Limits.List()
	if err != nil {
		return err
	}
	return service.SyncLimits(ctx, limits)
}

// syncSchedules does the same for schedules.
func syncSchedules(ctx context.Context, cfg config.Config, service *jobs.Service) error {
	if !cfg.HasSchedules {
		return nil
	}
	schedules, err := cfg.Schedules.List()
	if err != nil {
		return err
	}
	return service.SyncSchedules(ctx, schedules)
}

// closeConnections waits for the statements in progress. A stuck database may never
// answer them.
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
