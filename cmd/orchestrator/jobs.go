package main

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/api/resolve"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/store"
)

// directPoll is how often a process without a worker asks the database whether a job
// has ended that somebody waits for.
const directPoll = 250 * time.Millisecond

// directRulesWithin bounds the first look at limits and pauses.
const directRulesWithin = 5 * time.Second

// apiJobs is the ledger as the API sees it: the service's verbs, and the store's
// where nobody has to be woken.
type apiJobs struct {
	*jobs.Service
	unwrapped
}

// unwrapped are the verbs of the store that need no service.
type unwrapped interface {
	Get(ctx context.Context, id job.ID) (job.View, error)
	List(ctx context.Context, filter job.Filter) (job.Page, error)
	Find(ctx context.Context, filter job.Filter) (job.FoundPage, error)
	Lookup(ctx context.Context, lookup job.Lookup) ([]job.Found, error)
	Tree(ctx context.Context, id job.ID, filter job.TreeFilter) (job.Tree, error)
	Count(ctx context.Context, filter job.Filter) (job.Count, error)
	Hold(ctx context.Context, id job.ID) (job.View, error)
	Workflows(ctx context.Context, filter job.WorkflowFilter) ([]job.Workflow, error)
	Workflow(ctx context.Context, id job.ID) (job.Workflow, error)
	WorkflowDetail(ctx context.Context, id job.ID) (job.WorkflowDetail, error)
	DeadLetters(ctx context.Context, filter job.DeadLetterFilter) ([]job.DeadLetter, error)
	DeadLetterGroups(ctx context.Context, filter job.DeadLetterFilter) (groups []job.DeadLetterGroup, more bool, err error)
	Types(ctx context.Context) ([]job.TypeSpec, error)
	Ping(ctx context.Context) error
}

// accepting checks submissions from inside as the API checks those of clients.
func accepting(resolver *resolve.Resolver) func(context.Context, *jobs.Service, []byte, string, job.Trace) (job.Submission, error) {
	return func(ctx context.Context, s *jobs.Service, text []byte, tenant string, trace job.Trace) (job.Submission, error) {
		return resolver.Text(ctx, s, text, tenant, trace)
	}
}

// directJobs returns the ledger for a process without a worker, and a function that
// ends it: it sends the last hints before the context ends.
func directJobs(
	s *store.Store, cell job.Cell, types config.Jobs, retention job.RetentionPolicies, events job.EventLog, log *slog.Logger,
) (apiJobs, func(context.Context), error) {
	service, err := jobs.New(jobs.Config{
		PollInterval: directPoll, PollOnly: true, Resolve: types.Resolve, AcceptUnknownTypes: types.AcceptUnknownTypes,
		Accept: accepting(resolve.New(log, cell)), Retention: retention, CallbackURL: types.CallbackURL, Events: events, Cell: cell,
		Log: log, Meter: noop.Meter{},
	}, s)
	if err != nil {
		return apiJobs{}, nil, err
	}
	loading, loaded := context.WithTimeout(context.Background(), directRulesWithin)
	defer loaded()
	_ = service.LoadRules(loading) // Run tries again
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		service.Run(ctx)
		ended <- nil
	}()
	return apiJobs{service, s}, func(last context.Context) {
		stop()
		_ = await(last, ended)
		service.Hints.Flush(last)
	}, nil
}
