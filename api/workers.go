package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Worker is one run of an orchestrator, from its start to its end.
type Worker struct {
	WorkerID      string              `json:"workerId" doc:"Another for each start."`
	Host          string              `json:"host"`
	PID           int                 `json:"pid"`
	Condition     job.Condition       `json:"condition" enum:"alive,silent,stopped" doc:"A silent worker has missed its heartbeats: it has crashed or is cut off, and its jobs are taken over."`
	StartedAt     time.Time           `json:"startedAt"`
	LastHeartbeat time.Time           `json:"lastHeartbeat"`
	StoppedAt     *time.Time          `json:"stoppedAt,omitempty"`
	Plugins       json.RawMessage     `json:"plugins" doc:"What it serves: any JSON value."`
	Jobs          map[job.State]int64 `json:"jobs" doc:"How many jobs it runs, and how many it has ended, by their exact state."`
}

func workerOf(w job.WorkerView) Worker {
	return Worker{
		WorkerID: w.ID, Host: w.Host, PID: w.PID, Condition: w.Condition,
		StartedAt: w.StartedAt.UTC(), LastHeartbeat: w.HeartbeatAt.UTC(), StoppedAt: utc(w.StoppedAt),
		Plugins: w.Plugins, Jobs: orNone(w.Jobs),
	}
}

// orNone makes an object of a map that was never made, where JSON would have
// null.
func orNone[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}

// WorkerList is all workers.
type WorkerList struct {
	Workers []Worker `json:"workers" nullable:"false"`
}

// WorkerSummary adds up what workers did.
type WorkerSummary struct {
	SinceMinutes int                 `json:"sinceMinutes,omitempty" doc:"How far back it goes; absent for ever."`
	Totals       map[job.State]int64 `json:"totals" doc:"How many jobs workers run, and how many they have ended, by their exact state."`
}

type workersOutput struct{ Body WorkerList }

type summaryInput struct {
	query
	SinceMinutes sinceMinutes `query:"sinceMinutes" doc:"Count only what has happened in so many minutes; taken as 1 or 1440 when it lies outside."`
}

// sinceMinutes is how far an operator looks back.
type sinceMinutes = clamped[aDay]

type aDay struct{}

func (aDay) highest() int { return 24 * 60 }
func (aDay) usual() int   { return 0 }

type summaryOutput struct{ Body WorkerSummary }

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
	out := &workersOutput{Body: WorkerList{Workers: make([]Worker, 0, len(known))}}
	for _, w := range known {
		out.Body.Workers = append(out.Body.Workers, workerOf(w))
	}
	return out, nil
}

func (s *service) summary(ctx context.Context, in *summaryInput) (*summaryOutput, error) {
	minutes := in.SinceMinutes.value()
	totals, err := s.operations.WorkerTotals(ctx, time.Duration(minutes)*time.Minute)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &summaryOutput{Body: WorkerSummary{SinceMinutes: minutes, Totals: orNone(totals)}}, nil
}
