package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Queue is what waits and runs of one job type.
type Queue struct {
	JobType             string  `json:"jobType" example:"SEND_EMAIL"`
	Queued              int64   `json:"queued" doc:"Jobs that a free handler could run now."`
	OldestQueuedSeconds float64 `json:"oldestQueuedSeconds" doc:"How long the first of these has been waiting; 0 when there is none."`
	Scheduled           int64   `json:"scheduled" doc:"Jobs that wait for their time."`
	Held                int64   `json:"held" doc:"Jobs that wait for their release."`
	Retrying            int64   `json:"retrying" doc:"Jobs that wait out a backoff."`
	Running             int64   `json:"running"`
	Dead                int64   `json:"dead" doc:"Dead-lettered jobs."`
	Served              bool    `json:"served" doc:"Whether a live worker has a handler for the type."`
}

func queuesOf(found []job.Queue) []Queue {
	queues := make([]Queue, 0, len(found))
	for _, q := range found {
		queues = append(queues, Queue{
			JobType: q.Type, Queued: q.Queued, OldestQueuedSeconds: q.Oldest.Seconds(), Scheduled: q.Scheduled,
			Held: q.Held, Retrying: q.Retrying, Running: q.Running, Dead: q.Dead, Served: q.Served,
		})
	}
	return queues
}

// QueueList is what waits and runs of every job type.
type QueueList struct {
	Queues   []Queue  `json:"queues" nullable:"false"`
	Unserved []string `json:"unserved" nullable:"false" doc:"Job types of which jobs wait or run while no live worker has a handler."`
}

type queuesOutput struct{ Body QueueList }

func (s *service) addQueues(routes huma.API) {
	huma.Register(routes, acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "list-queues", Method: http.MethodGet, Path: "/debug/queues",
		Summary:     "See what waits and runs, by job type",
		Description: "A job type is there as long as a job of it waits, runs or is dead-lettered, or a live worker has a handler for it.",
		Tags:        []string{"Operation"},
	})), s.queues)
}

func (s *service) queues(ctx context.Context, _ *plainInput) (*queuesOutput, error) {
	found, err := s.operations.Queues(ctx)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &queuesOutput{Body: QueueList{Queues: queuesOf(found), Unserved: unserved(found)}}, nil
}

// unserved are the job types whose jobs are stuck until a handler comes.
func unserved(queues []job.Queue) []string {
	types := []string{}
	for _, q := range queues {
		if !q.Served && q.Queued+q.Scheduled+q.Held+q.Retrying+q.Running > 0 {
			types = append(types, q.Type)
		}
	}
	return types
}
