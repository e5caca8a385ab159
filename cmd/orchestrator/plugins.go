package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/store"
)

const (
	// pluginsUpWithin is how long the API waits, before it listens, for plugins to
	// come up for the first time and declare their job types.
	pluginsUpWithin = 5 * time.Second
	// closePluginsWithin is how long plugins without work get to exit by themselves.
	closePluginsWithin = 3 * time.Second
)

// awaitPlugins returns when every plugin has come up or failed once, so that a job
// submitted the moment the API listens finds its type known. It waits for
// pluginsUpWithin at most.
func awaitPlugins(ctx context.Context, plugins *host.Host) {
	bounded, cancel := context.WithTimeout(ctx, pluginsUpWithin)
	defer cancel()
	for {
		waiting := false
		for _, plugin := range plugins.Status() {
			waiting = waiting || (plugin.State == job.PluginStarting && plugin.Restarts == 0)
		}
		if !waiting {
			return
		}
		select {
		case <-plugins.Changed():
		case <-bounded.Done():
			return
		}
	}
}

func closePlugins(abort context.Context, plugins *host.Host, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(abort, closePluginsWithin)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- plugins.Close(ctx) }()
	if err := await(abort, closed); err != nil {
		log.Warn("plugins did not stop cleanly", "error", err)
	}
}

// socketDir is where the plugins' sockets go. It belongs to the user, it is short
// because a socket's path must be, and users that plugins run as can pass it.
func socketDir(plugins []config.Plugin) string {
	shared := slices.ContainsFunc(plugins, func(h config.Plugin) bool { return h.User != "" })
	base := os.Getenv("XDG_RUNTIME_DIR")
	if info, err := os.Stat(base); shared || base == "" || len(base) > 30 || err != nil || !info.IsDir() {
		base = "/tmp"
	}
	return filepath.Join(base, "holdfast-"+strconv.Itoa(os.Getuid()))
}

// How many waiting jobs, on how many pages, a new schema is checked against.
const (
	samplePayloads = 100
	samplePages    = 5
)

// acceptance tells the plugin host which job types a plugin may serve, and which
// jobs wait for a new version of it.
type acceptance struct{ ledger *store.Store }

var _ host.Ledger = acceptance{}

func (a acceptance) Unfinished(ctx context.Context, jobType string) (int64, error) {
	queues, err := a.ledger.Queues(ctx)
	if err != nil {
		return 0, err
	}
	for _, q := range queues {
		if q.JobType == jobType {
			return q.Queued + q.Scheduled + q.Held + q.Retrying + q.Running, nil
		}
	}
	return 0, nil
}

func (a acceptance) OwnTypes(ctx context.Context, plugin string, types, moved []string) error {
	return a.ledger.OwnTypes(ctx, plugin, types, moved)
}

// Waiting returns the newest jobs: they have passed the present schema.
func (a acceptance) Waiting(ctx context.Context, jobType string) ([]host.Payload, error) {
	var found []host.Payload
	filter := job.Filter{
		Type: jobType, States: []job.State{job.Created, job.Queued, job.Retry, job.Running}, Limit: samplePayloads,
	}
	for range samplePages {
		page, err := a.ledger.List(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, listed := range page.Jobs {
			detail, err := a.ledger.Detail(ctx, listed.ID)
			if err != nil {
				return nil, err
			}
			found = append(found, host.Payload{JobID: listed.ID, JSON: detail.Payload})
		}
		if filter.After = page.Next; filter.After == (job.ID{}) || len(found) >= samplePayloads {
			break
		}
	}
	return found, nil
}

// allPlugins are the plugins of all orchestrators, whom it tells of commands.
type allPlugins struct {
	*store.Store
	hints *jobs.Hints
}

func (a allPlugins) CommandPlugin(ctx context.Context, command job.PluginCommand) (job.PluginCommand, error) {
	asked, err := a.Store.CommandPlugin(ctx, command)
	if err == nil || errors.Is(err, job.ErrOutcomeUnknown) {
		a.hints.Announce(job.PluginsCommanded)
	}
	return asked, err
}
