package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

type queuesOutput struct{ Body v1.QueueList }

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
	return &queuesOutput{Body: v1.QueueListOf(found)}, nil
}
