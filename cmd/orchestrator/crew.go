package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/plugins"
	"github.com/holdfast-jobs/holdfast/store"
)

// crew is the plugins of a worker, with what tells the database, and so all other processes,
// about them. That of a process without the role is nil, and its methods do nothing.
type crew struct {
	host     *host.Host
	recorder *plugins.Recorder
	ledger   *store.Store
	worker   job.Worker
	log      *slog.Logger
}

// startCrew starts the plugins. It returns when each has come up or failed once; see
// awaitPlugins.
func startCrew(ctx context.Context, cfg config.Config, environ []string, ledger *store.Store, worker job.Worker, log *slog.Logger) (*crew, error) {
	configured, err := cfg.HostConfigs(environ)
	if err != nil {
		return nil, err
	}
	settings := host.DefaultSettings(socketDir(cfg.Plugins), log)
	settings.Cgroup = cfg.Worker.PluginsCgroup
	settings.DrainTimeout = max(cfg.Worker.DrainTimeout, closePluginsWithin)
	settings.Ledger, settings.Caps = acceptance{ledger}, cfg.Jobs.Caps()
	recorder := &plugins.Recorder{Journal: plugins.NewJournal(), Store: ledger, Worker: worker, Log: log}
	settings.Happened = recorder.Journal.Add
	hosted, err := host.Start(ctx, settings, configured)
	if err != nil {
		return nil, err
	}
	awaitPlugins(ctx, hosted)
	return &crew{host: hosted, recorder: recorder, ledger: ledger, worker: worker, log: log}, nil
}

// plugins are those that the loops of a worker start attempts in.
func (c *crew) plugins() runtime.Plugins {
	if c == nil {
		return nil
	}
	return c.host
}

func (c *crew) status() []v1.Plugin {
	if c == nil {
		return nil
	}
	return c.host.Status()
}

// reload replaces the plugins that are configured anew.
func (c *crew) reload(next config.Config, environ []string) error {
	if c == nil {
		return nil
	}
	configured, err := next.HostConfigs(environ)
	if err != nil {
		return err
	}
	return c.host.Reload(configured)
}

// run carries out commands until ctx ends, and tells the database about the plugins until
// following does.
func (c *crew) run(ctx, following context.Context, service *jobs.Service) {
	if c == nil {
		return
	}
	describer := &plugins.Describer{Report: c.host.Report, Journal: c.recorder.Journal, Store: c.ledger, Worker: c.worker, Log: c.log}
	commander := &plugins.Commander{
		Store: c.ledger, Host: c.host, Worker: c.worker, Wake: service.Hints.Heard(job.PluginsCommanded), Log: c.log,
		Pause: func(poll time.Duration) time.Duration { return service.Pace.Pause(job.RoleAPI, poll) },
	}
	var beside sync.WaitGroup
	beside.Go(func() { c.recorder.Run(following) })
	beside.Go(func() { describer.Run(following) })
	beside.Go(func() { commander.Run(ctx) })
	beside.Wait()
}

func (c *crew) close(abort context.Context) {
	if c != nil {
		closePlugins(abort, c.host, c.log)
	}
}
