package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// HandlerStatus is a handler plugin of the orchestrator that is asked. Its name in
// the description must not be Handler: generators have a type of that name.
type HandlerStatus struct {
	HandlerVersion
	Name       string            `json:"name"`
	Path       string            `json:"path" doc:"Of the binary, as it is configured."`
	State      job.PluginState   `json:"state" enum:"starting,up,broken,disabled" doc:"One that is broken keeps failing and is launched only now and then."`
	JobTypes   []string          `json:"jobTypes" nullable:"false" doc:"What it serves, or served last."`
	LeftOut    []string          `json:"jobTypesLeftOut,omitempty" nullable:"false" doc:"What it declares and does not serve: the configuration gives it to another handler, or lists other types for this one. Absent when there is none."`
	PIDs       []int             `json:"pids" nullable:"false" doc:"The processes that serve."`
	Processes  int               `json:"processes" doc:"How many processes there should be."`
	Running    int               `json:"running" doc:"Attempts in the processes that serve."`
	Free       int               `json:"free" doc:"How many more these can take."`
	Alone      int               `json:"alone" doc:"Attempts that have a process of their own, or wait for it."`
	Draining   int               `json:"draining" doc:"Attempts that go on in versions that were replaced."`
	Restarts   int               `json:"restarts" doc:"Launches that failed and processes that ended, since the orchestrator started."`
	Crashes    int               `json:"crashes" doc:"The processes among them that died."`
	LastError  string            `json:"lastError,omitempty"`
	PassedOver string            `json:"passedOver,omitempty" doc:"Why what stands under the path does not serve, and is not tried: it is no file, or was rolled back or refused before the handler was enabled. Absent when there is nothing to say."`
	Limits     []Enforcement     `json:"limits" nullable:"false" doc:"How each limit that is configured is enforced on this machine."`
	Candidate  *HandlerCandidate `json:"candidate,omitempty" doc:"The version that is to follow; absent while there is none."`
	LastSwap   *HandlerSwap      `json:"lastSwap,omitempty" doc:"How a version was last replaced, or is; absent before the first time."`
}

// Enforcement says how one limit of a handler is enforced.
type Enforcement struct {
	Limit string `json:"limit" doc:"The limit's key in the configuration."`
	By    string `json:"by" doc:"The means, such as cgroup or rlimit."`
	Gap   string `json:"gap,omitempty" doc:"What gets past."`
}

// HandlerVersion tells one version of a handler from another.
type HandlerVersion struct {
	Version string `json:"version" doc:"As its manifest says; empty before it was ever up."`
	SHA256  string `json:"sha256" doc:"Of the binary."`
}

// HandlerCandidate is a version that runs beside the one that serves.
type HandlerCandidate struct {
	HandlerVersion
	State   job.CandidateState `json:"state" enum:"starting,canary"`
	PIDs    []int              `json:"pids" nullable:"false"`
	Running int                `json:"running" doc:"Attempts that it has."`
	HandlerTrial
}

// HandlerTrial compares a candidate with the version that serves at the same time.
type HandlerTrial struct {
	Ended         int          `json:"ended" doc:"Attempts of the candidate that ended on trial."`
	Failed        int          `json:"failed" doc:"Those of them that failed. They were not charged."`
	ServingEnded  int          `json:"servingEnded" doc:"Attempts of the version that serves that ended meanwhile; before it, if none did."`
	ServingFailed int          `json:"servingFailed" doc:"Those of them that failed."`
	Slowest       *HandlerPace `json:"slowest,omitempty" doc:"The job type at which the candidate is slowest in comparison; absent where there is nothing to compare."`
}

// HandlerPace compares how long the latest attempts at a job type took that succeeded.
type HandlerPace struct {
	JobType       string  `json:"jobType"`
	MedianSeconds float64 `json:"medianSeconds" doc:"Of the candidate."`
	UsualSeconds  float64 `json:"usualSeconds" doc:"Of the version that serves."`
}

// HandlerSwap is one replacement of the version that serves.
type HandlerSwap struct {
	Trigger job.SwapTrigger `json:"trigger" enum:"file,config,request,restart,failure" doc:"What has begun it. After a failure, the version before takes the place of one that keeps failing soon after its promotion."`
	From    HandlerVersion  `json:"from"`
	To      HandlerVersion  `json:"to"`
	BegunAt time.Time       `json:"begunAt"`
	EndedAt *time.Time      `json:"endedAt,omitempty" doc:"Absent while it is under way."`
	Result  job.SwapResult  `json:"result,omitempty" enum:"promoted,rolled_back,refused,abandoned" doc:"Absent while it is under way. Whatever it is but promoted, the old version serves on."`
	Trial   *HandlerTrial   `json:"trial,omitempty" doc:"How the new version did on trial; absent if it was not tried, or none of its attempts has ended."`
	Reason  string          `json:"reason,omitempty" doc:"Why the new version does not serve; after a failure, why the other does not any more."`
}

func handlerOf(p job.PluginStatus) HandlerStatus {
	h := HandlerStatus{
		HandlerVersion: versionOf(p.PluginVersion), Name: p.Name, Path: p.Path, State: p.State,
		JobTypes: append([]string{}, p.Types...), LeftOut: p.SkippedTypes, PIDs: append([]int{}, p.PIDs...), Processes: p.Processes,
		Running: p.InFlight, Free: p.Free, Alone: p.Isolated, Draining: p.Draining,
		Restarts: p.Restarts, Crashes: p.Crashes, LastError: p.LastError, PassedOver: p.SkipReason,
		Limits: make([]Enforcement, 0, len(p.Limits)),
	}
	for _, l := range p.Limits {
		h.Limits = append(h.Limits, Enforcement(l))
	}
	if c := p.Candidate; c != nil {
		h.Candidate = &HandlerCandidate{
			HandlerVersion: versionOf(c.PluginVersion), State: c.State, PIDs: append([]int{}, c.PIDs...),
			Running: c.InFlight, HandlerTrial: trialOf(c.Trial),
		}
	}
	if p.LastSwap != nil {
		h.LastSwap = new(swapOf(*p.LastSwap))
	}
	return h
}

func trialOf(t job.Trial) HandlerTrial {
	shown := HandlerTrial{Ended: t.Ended, Failed: t.Failed, ServingEnded: t.ServingEnded, ServingFailed: t.ServingFailed}
	if p := t.Slowest; p != nil {
		shown.Slowest = &HandlerPace{JobType: p.JobType, MedianSeconds: p.Median.Seconds(), UsualSeconds: p.ServingMedian.Seconds()}
	}
	return shown
}

func versionOf(v job.PluginVersion) HandlerVersion {
	return HandlerVersion{Version: v.Version, SHA256: v.Digest}
}

func swapOf(s job.PluginSwap) HandlerSwap {
	swap := HandlerSwap{
		Trigger: s.Trigger, From: versionOf(s.From), To: versionOf(s.To), BegunAt: s.BegunAt.UTC(), Result: s.Result, Reason: s.Reason,
	}
	if s.Trial != nil {
		swap.Trial = new(trialOf(*s.Trial))
	}
	if !s.EndedAt.IsZero() {
		swap.EndedAt = new(s.EndedAt.UTC())
	}
	return swap
}

// HandlerList is all handlers of one orchestrator.
type HandlerList struct {
	Handlers []HandlerStatus `json:"handlers" nullable:"false" doc:"In the order of configuration."`
}

type handlersOutput struct{ Body HandlerList }

type handlerOutput struct{ Body HandlerStatus }

type swapOutput struct {
	Status int
	Body   HandlerSwap
}

// handlerInput names a handler, in any characters.
type handlerInput struct {
	query
	Name string `path:"name" doc:"The handler's name, percent-encoded."`
}

type swapInput struct {
	query
	Name  string `path:"name" doc:"The handler's name, percent-encoded."`
	Force bool   `query:"force" doc:"Replace it even if there are jobs that the new version could not do."`
}

type enableInput struct {
	query
	Name  string `path:"name" doc:"The handler's name, percent-encoded."`
	Force bool   `query:"force" doc:"Take its file as it is, also when that was rolled back or refused before."`
}

func (s *service) addHandlers(routes huma.API) {
	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "list-handlers", Method: http.MethodGet, Path: "/debug/handlers",
		Summary:     "See the handlers of this orchestrator",
		Description: "Each plugin with its version, its processes, and how it was last replaced. Other orchestrators have their own.",
		Tags:        []string{"Operation"},
	})), func(context.Context, *plainInput) (*handlersOutput, error) {
		out := &handlersOutput{Body: HandlerList{Handlers: []HandlerStatus{}}}
		for _, p := range s.pluginStatus() {
			out.Body.Handlers = append(out.Body.Handlers, handlerOf(p))
		}
		return out, nil
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "swap-handler", Method: http.MethodPost, Path: "/debug/handlers/{name}/swap",
		Summary: "Replace a handler by what its file is now",
		Description: "As when the file has changed: the new version starts beside the old one, is compared and tried, and is " +
			"promoted or rolled back. Answers 200 when that is decided, whatever it is, 202 when it takes longer than a request may, and 503 " +
			"when another swap takes as long: then nothing comes of this one.",
		Tags:      []string{"Operation"},
		Responses: swapAnswers(routes),
	})), func(ctx context.Context, in *swapInput) (*swapOutput, error) {
		return s.swapped(ctx, in.decoded(in.Name), func(name string) (job.PluginSwap, error) { return s.plugins.Swap(ctx, name, in.Force) })
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "restart-handler", Method: http.MethodPost, Path: "/debug/handlers/{name}/restart",
		Summary: "Replace a handler's processes by others of the same version",
		Description: "The new ones start before the old ones finish what they have. Answers 200 when they serve or have failed to start, " +
			"202 when it takes longer than a request may, and 503 when another swap takes as long: then nothing comes of this one.",
		Tags:      []string{"Operation"},
		Responses: swapAnswers(routes),
	})), func(ctx context.Context, in *handlerInput) (*swapOutput, error) {
		return s.swapped(ctx, in.decoded(in.Name), func(name string) (job.PluginSwap, error) { return s.plugins.Restart(ctx, name) })
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "disable-handler", Method: http.MethodPost, Path: "/debug/handlers/{name}/disable",
		Summary: "Stop a handler",
		Description: "It finishes what it has and starts nothing more; its jobs stay queued. It stays so until it is enabled or this " +
			"orchestrator starts again.",
		Tags: []string{"Operation"},
	})), func(ctx context.Context, in *handlerInput) (*handlerOutput, error) {
		return s.operated(ctx, in.decoded(in.Name), func(name string) error { return s.plugins.Disable(ctx, name) })
	})

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "enable-handler", Method: http.MethodPost, Path: "/debug/handlers/{name}/enable",
		Summary: "Start a handler that was disabled",
		Description: "What its file is now serves; but when that was rolled back or refused, the version that served before, and " +
			"passedOver says so. If that one is not there any more, the answer is 409. One that is not disabled is left as it is.",
		Tags: []string{"Operation"},
	})), func(ctx context.Context, in *enableInput) (*handlerOutput, error) {
		return s.operated(ctx, in.decoded(in.Name), func(name string) error { return s.plugins.Enable(ctx, name, in.Force) })
	})
}

// swapAnswers are the two successes of a swap.
func swapAnswers(routes huma.API) map[string]*huma.Response {
	content := func() map[string]*huma.MediaType {
		return map[string]*huma.MediaType{mediaJSON: {Schema: schemaFor[HandlerSwap](routes.OpenAPI())}}
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
		return nil, s.failHandler(ctx, err)
	}
	swap, err := do(name)
	if err == nil {
		return &swapOutput{Status: http.StatusOK, Body: swapOf(swap)}, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && !swap.BegunAt.IsZero() {
		return &swapOutput{Status: http.StatusAccepted, Body: swapOf(swap)}, nil
	}
	return nil, s.failHandler(ctx, err)
}

func (s *service) operated(ctx context.Context, name string, do func(name string) error) (*handlerOutput, error) {
	_, err := s.find(name)
	if err == nil {
		err = do(name)
	}
	var p job.PluginStatus
	if err == nil {
		p, err = s.find(name)
	}
	if err != nil {
		return nil, s.failHandler(ctx, err)
	}
	return &handlerOutput{Body: handlerOf(p)}, nil
}

// failHandler translates an error of Plugins. Those who get it may see the reason.
func (s *service) failHandler(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, job.ErrNoPlugin):
		return problem(http.StatusNotFound, "this orchestrator has no handler of that name")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return huma.ErrorWithHeaders(
			problem(http.StatusServiceUnavailable, "another swap of the handler is under way; try again when it has ended"),
			http.Header{"Retry-After": {retryAfterSeconds}})
	}
	s.log.WarnContext(ctx, "handler not enabled", "error", err)
	return problem(http.StatusConflict, err.Error())
}
