package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

type pluginsOutput struct{ Body v1.PluginList }

type pluginOutput struct{ Body v1.Plugin }

type swapOutput struct {
	Status int
	Body   v1.PluginSwap
}

// pluginInput names a plugin, in any characters.
type pluginInput struct {
	query
	Name string `path:"name" doc:"The plugin's name, percent-encoded."`
}

type swapInput struct {
	query
	Name  string `path:"name" doc:"The plugin's name, percent-encoded."`
	Force bool   `query:"force" doc:"Replace it even if there are jobs that the new version could not do."`
}

type enableInput struct {
	query
	Name  string `path:"name" doc:"The plugin's name, percent-encoded."`
	Force bool   `query:"force" doc:"Take its file as it is, also when that was rolled back or refused before."`
}

func (s *service) addPlugins(routes huma.API) {
	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "list-plugins", Method: http.MethodGet, Path: "/debug/plugins",
		Summary:     "See the plugins of this orchestrator",
		Description: "Each with its version, its processes, and its latest replacement. Other orchestrators have their own.",
		Tags:        []string{"Operation"},
	})), func(context.Context, *plainInput) (*pluginsOutput, error) {
		return &pluginsOutput{Body: v1.PluginListOf(s.pluginStatus())}, nil
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "swap-plugin", Method: http.MethodPost, Path: "/debug/plugins/{name}/swap",
		Summary: "Replace a plugin with what its file is now",
		Description: "As when the file has changed: the new version starts beside the old one, is compared and tried, and is " +
			"promoted or rolled back. Answers 200 when that is decided, whatever it is, 202 when it takes longer than a request may, and 503 " +
			"when another swap takes as long: then nothing comes of this one.",
		Tags:      []string{"Operation"},
		Responses: swapAnswers(routes),
	})), func(ctx context.Context, in *swapInput) (*swapOutput, error) {
		return s.swapped(ctx, in.decoded(in.Name), func(name string) (job.PluginSwap, error) { return s.plugins.Swap(ctx, name, in.Force) })
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "restart-plugin", Method: http.MethodPost, Path: "/debug/plugins/{name}/restart",
		Summary: "Replace a plugin's processes with new ones of the same version",
		Description: "The new ones start before the old ones finish what they have. Answers 200 when they serve or have failed to start, " +
			"202 when it takes longer than a request may, and 503 when another swap takes as long: then nothing comes of this one.",
		Tags:      []string{"Operation"},
		Responses: swapAnswers(routes),
	})), func(ctx context.Context, in *pluginInput) (*swapOutput, error) {
		return s.swapped(ctx, in.decoded(in.Name), func(name string) (job.PluginSwap, error) { return s.plugins.Restart(ctx, name) })
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "disable-plugin", Method: http.MethodPost, Path: "/debug/plugins/{name}/disable",
		Summary: "Stop a plugin",
		Description: "It finishes what it has and starts nothing more; its jobs stay queued. It stays so until it is enabled or this " +
			"orchestrator starts again.",
		Tags: []string{"Operation"},
	})), func(ctx context.Context, in *pluginInput) (*pluginOutput, error) {
		return s.operated(ctx, in.decoded(in.Name), func(name string) error { return s.plugins.Disable(ctx, name) })
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "enable-plugin", Method: http.MethodPost, Path: "/debug/plugins/{name}/enable",
		Summary: "Start a plugin that was disabled",
		Description: "What its file is now serves; but when that was rolled back or refused, the version that served before, and " +
			"skipReason says why. If that one is not there any more, the answer is 409. One that is not disabled is left as it is.",
		Tags: []string{"Operation"},
	})), func(ctx context.Context, in *enableInput) (*pluginOutput, error) {
		return s.operated(ctx, in.decoded(in.Name), func(name string) error { return s.plugins.Enable(ctx, name, in.Force) })
	})
}

// swapAnswers are the two successes of a swap.
func swapAnswers(routes huma.API) map[string]*huma.Response {
	content := func() map[string]*huma.MediaType {
		return map[string]*huma.MediaType{mediaJSON: {Schema: schemaFor[v1.PluginSwap](routes.OpenAPI())}}
	}
	return map[string]*huma.Response{
		"200": {Description: "It has ended.", Content: content()},
		"202": {Description: "It is under way.", Content: content()},
	}
}

// pluginStatus is empty for an API without an orchestrator.
func (s *service) pluginStatus() []job.PluginStatus {
	if s.plugins == nil {
		return nil
	}
	return s.plugins.Status()
}

func (s *service) find(name string) (job.PluginStatus, error) {
	for _, p := range s.pluginStatus() {
		if p.Name == name {
			return p, nil
		}
	}
	return job.PluginStatus{}, job.ErrNoPlugin
}

func (s *service) swapped(ctx context.Context, name string, do func(name string) (job.PluginSwap, error)) (*swapOutput, error) {
	if _, err := s.find(name); err != nil {
		return nil, s.failPlugin(ctx, err)
	}
	swap, err := do(name)
	if err == nil {
		return &swapOutput{Status: http.StatusOK, Body: v1.PluginSwapOf(swap)}, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && !swap.BegunAt.IsZero() {
		return &swapOutput{Status: http.StatusAccepted, Body: v1.PluginSwapOf(swap)}, nil
	}
	return nil, s.failPlugin(ctx, err)
}

func (s *service) operated(ctx context.Context, name string, do func(name string) error) (*pluginOutput, error) {
	_, err := s.find(name)
	if err == nil {
		err = do(name)
	}
	var p job.PluginStatus
	if err == nil {
		p, err = s.find(name)
	}
	if err != nil {
		return nil, s.failPlugin(ctx, err)
	}
	return &pluginOutput{Body: v1.PluginOf(p)}, nil
}

// failPlugin translates an error of Plugins. Those who get it may see the reason.
func (s *service) failPlugin(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, job.ErrNoPlugin):
		return problem(http.StatusNotFound, "this orchestrator has no plugin of that name")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable("another swap of the plugin is under way; try again when it has ended")
	}
	s.log.WarnContext(ctx, "plugin not enabled", "error", err)
	return problem(http.StatusConflict, err.Error())
}
