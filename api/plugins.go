package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// pluginRoutes show and operate the plugins of this orchestrator.
type pluginRoutes struct {
	plugins Plugins // nil for an API without an orchestrator
	log     *slog.Logger
}

func (p *pluginRoutes) add(r *router) {
	add(r, "GET /debug/plugins", "list-plugins", guard.Observe, p.list, acrossTenants)
	add(r, "POST /debug/plugins/{name}/swap", "swap-plugin", guard.Operate, p.swap, acrossTenants)
	add(r, "POST /debug/plugins/{name}/restart", "restart-plugin", guard.Operate, p.restart, acrossTenants)
	add(r, "POST /debug/plugins/{name}/disable", "disable-plugin", guard.Operate, p.disable, acrossTenants)
	add(r, "POST /debug/plugins/{name}/enable", "enable-plugin", guard.Operate, p.enable, acrossTenants)
}

// pluginInput names a plugin. The name may contain any characters.
type pluginInput struct {
	call
	Name string `path:"name" doc:"The plugin's name, percent-encoded."`
}

type swapInput struct {
	call
	Name  string `path:"name" doc:"The plugin's name, percent-encoded."`
	Force bool   `query:"force" doc:"Replace it even if there are jobs that the new version cannot run."`
}

type enableInput struct {
	call
	Name  string `path:"name" doc:"The plugin's name, percent-encoded."`
	Force bool   `query:"force" doc:"Use the file as it is, even if it was rolled back or refused before."`
}

type swapOutput struct {
	Status int
	Body   v1.PluginSwap
}

func (p *pluginRoutes) status() []v1.Plugin {
	if p.plugins == nil {
		return []v1.Plugin{}
	}
	return p.plugins.Status()
}

func (p *pluginRoutes) list(context.Context, *call) (*body[v1.PluginList], error) {
	return &body[v1.PluginList]{v1.PluginList{Plugins: p.status()}}, nil
}

func (p *pluginRoutes) swap(ctx context.Context, in *swapInput) (*swapOutput, error) {
	return p.swapped(ctx, in.decoded(in.Name), func(name string) (v1.PluginSwap, error) { return p.plugins.Swap(asking(ctx), name, in.Force) })
}

func (p *pluginRoutes) restart(ctx context.Context, in *pluginInput) (*swapOutput, error) {
	return p.swapped(ctx, in.decoded(in.Name), func(name string) (v1.PluginSwap, error) { return p.plugins.Restart(asking(ctx), name) })
}

func (p *pluginRoutes) disable(ctx context.Context, in *pluginInput) (*body[v1.Plugin], error) {
	return p.operated(ctx, in.decoded(in.Name), func(name string) error { return p.plugins.Disable(asking(ctx), name) })
}

func (p *pluginRoutes) enable(ctx context.Context, in *enableInput) (*body[v1.Plugin], error) {
	return p.operated(ctx, in.decoded(in.Name), func(name string) error { return p.plugins.Enable(asking(ctx), name, in.Force) })
}

// asking says who has sent the request.
func asking(ctx context.Context) context.Context { return job.WithActor(ctx, guard.Name(ctx)) }

// swapped answers 200 for a swap that has ended, and 202 for one that takes longer
// than the request may.
func (p *pluginRoutes) swapped(ctx context.Context, name string, do func(string) (v1.PluginSwap, error)) (*swapOutput, error) {
	if _, err := p.find(name); err != nil {
		return nil, err
	}
	swap, err := do(name)
	switch {
	case err == nil:
		return &swapOutput{Status: http.StatusOK, Body: swap}, nil
	case errors.Is(err, context.DeadlineExceeded) && !swap.BegunAt.IsZero():
		return &swapOutput{Status: http.StatusAccepted, Body: swap}, nil
	}
	return nil, p.refusal(ctx, err)
}

func (p *pluginRoutes) operated(ctx context.Context, name string, do func(string) error) (*body[v1.Plugin], error) {
	if _, err := p.find(name); err != nil {
		return nil, err
	}
	if err := do(name); err != nil {
		return nil, p.refusal(ctx, err)
	}
	plugin, err := p.find(name)
	if err != nil {
		return nil, err
	}
	return &body[v1.Plugin]{plugin}, nil
}

func (p *pluginRoutes) find(name string) (v1.Plugin, error) {
	for _, plugin := range p.status() {
		if plugin.Name == name {
			return plugin, nil
		}
	}
	return v1.Plugin{}, job.ErrNoPlugin
}

// refusal is the answer to an error of Plugins. Operators may see the reason.
func (p *pluginRoutes) refusal(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, job.ErrNoPlugin):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return v1.Unavailable("another swap of the plugin is in progress; try again when it has ended")
	}
	p.log.WarnContext(ctx, "plugin not enabled", "error", err)
	return problem(http.StatusConflict, err.Error())
}
