package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

type workersOutput struct{ Body v1.WorkerList }

type summaryInput struct {
	query
	SinceMinutes sinceMinutes `query:"sinceMinutes" doc:"Count only what has happened in so many minutes; taken as 1 or 1440 when it lies outside."`
}

// sinceMinutes is how far an operator looks back.
type sinceMinutes = clamped[aDay]

type aDay struct{}

func (aDay) highest() int { return 24 * 60 }
func (aDay) usual() int   { return 0 }

type summaryOutput struct{ Body v1.WorkerSummary }

func (s *service) addWorkers(routes huma.API) {
	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "list-workers", Method: http.MethodGet, Path: "/debug/workers",
		Summary:     "See the workers and what they did",
		Description: "Every orchestrator that is known, alive or not.",
		Tags:        []string{"Operation"},
	})), s.workers)

	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "summarize-workers", Method: http.MethodGet, Path: "/debug/workers/summary",
		Summary:     "See what all workers did together",
		Description: "Without sinceMinutes: ever.",
		Tags:        []string{"Operation"},
		// As for dead letters.
		SkipValidateParams: true,
	})), s.summary)
}

func (s *service) workers(ctx context.Context, _ *plainInput) (*workersOutput, error) {
	known, err := s.operations.Workers(ctx)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &workersOutput{Body: v1.WorkerListOf(known)}, nil
}

func (s *service) summary(ctx context.Context, in *summaryInput) (*summaryOutput, error) {
	minutes := in.SinceMinutes.value()
	totals, err := s.operations.WorkerTotals(ctx, time.Duration(minutes)*time.Minute)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &summaryOutput{Body: v1.WorkerSummaryOf(totals, minutes)}, nil
}
