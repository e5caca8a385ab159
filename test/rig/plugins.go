package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// declaredWithin bounds the wait for plugins after the start. Some never declare anything.
const declaredWithin = 30 * time.Second

// ErrNotDescribed is the error for plugins of which a process has said nothing yet.
var ErrNotDescribed = errors.New("the worker has not described its plugins yet")

// Plugins returns the orchestrator's plugins. Those of a process of its own are as the database
// has them: figures are seconds old at most, and everything else is of this moment or the last.
func (o *Orchestrator) Plugins(ctx context.Context) ([]v1.Plugin, error) {
	if len(o.servers) == 1 {
		var found v1.PluginList
		err := o.Call(ctx, http.MethodGet, "/debug/plugins", nil, http.StatusOK, &found)
		return found.Plugins, err
	}
	id, err := o.workerID(ctx)
	if err != nil {
		return nil, err
	}
	var found v1.PluginsEverywhere
	if err := o.Call(ctx, http.MethodGet, "/debug/plugins/everywhere", nil, http.StatusOK, &found); err != nil {
		return nil, err
	}
	for _, described := range found.Orchestrators {
		if described.WorkerID == id && described.DescribedAt != nil {
			return described.Plugins, nil
		}
	}
	return nil, ErrNotDescribed
}

// workerID is the id of the process with the role worker, which is another after each start.
func (o *Orchestrator) workerID(ctx context.Context) (string, error) {
	var found v1.WorkerList
	if err := o.Call(ctx, http.MethodGet, "/debug/workers", nil, http.StatusOK, &found); err != nil {
		return "", err
	}
	pids := make(map[int]bool)
	for _, s := range o.running() {
		pids[s.pid()] = true
	}
	for _, w := range found.Workers {
		if pids[w.PID] && w.StoppedAt == nil && slices.Contains(w.Roles, job.RoleWorker) {
			return w.WorkerID, nil
		}
	}
	return "", ErrNotDescribed
}

// CommandPlugin lets the orchestrator swap, restart, disable or enable a plugin, and returns
// when it has.
func (o *Orchestrator) CommandPlugin(ctx context.Context, name string, verb job.PluginVerb) error {
	path := "/debug/plugins/" + url.PathEscape(name)
	if len(o.servers) == 1 {
		return o.Call(ctx, http.MethodPost, path+"/"+string(verb), nil, http.StatusOK, nil)
	}
	var command v1.PluginCommand
	err := o.Call(ctx, http.MethodPost, path+"/commands", v1.PluginCommandSpec{Command: string(verb)}, http.StatusAccepted, &command)
	for err == nil && !command.Ended {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the command to %s the plugin %s has not ended", verb, name)
		case <-time.After(glance):
		}
		id := command.CommandID.String()
		command = v1.PluginCommand{} // decoding keeps what is absent
		err = o.Call(ctx, http.MethodGet, "/debug/plugins/commands/"+id, nil, http.StatusOK, &command)
	}
	if err != nil {
		return err
	}
	for _, outcome := range command.Outcomes {
		if outcome.Result != job.CommandDone {
			return fmt.Errorf("%s plugin %s: %s: %s", verb, name, outcome.Result, outcome.Reason)
		}
	}
	return nil
}

// awaitPlugins waits until no plugin is starting for the first time, and the job types of
// those that are up can be submitted: an orchestrator is ready even if its plugins are slow to
// declare them. It does not wait if it may not see the plugins.
func (o *Orchestrator) awaitPlugins(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, declaredWithin)
	defer cancel()
	for ctx.Err() == nil {
		found, err := o.Plugins(ctx)
		waits := func(p v1.Plugin) bool {
			return p.State == job.PluginStarting || p.State == job.PluginUp && !o.declared(ctx, p.JobTypes)
		}
		if !errors.Is(err, ErrNotDescribed) && (err != nil || !slices.ContainsFunc(found, waits)) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
}

// declared reports whether jobs of all these types can be submitted.
func (o *Orchestrator) declared(ctx context.Context, types []string) bool {
	return !slices.ContainsFunc(types, func(jobType string) bool {
		return o.Call(ctx, http.MethodGet, "/job-types/"+url.PathEscape(jobType), nil, http.StatusOK, nil) != nil
	})
}
