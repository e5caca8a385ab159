package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

type detailOutput struct{ Body v1.JobDetail }

func (s *service) addDetail(routes huma.API) {
	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "inspect-job", Method: http.MethodGet, Path: "/debug/jobs/{id}",
		Summary:     "See everything about a job",
		Description: "Its payload, attempts, errors, worker, lease and trace too, which clients are not shown.",
		Tags:        []string{"Operation"},
	}), s.detail)
}

func (s *service) detail(ctx context.Context, in *jobInput) (*detailOutput, error) {
	detail, err := s.operations.Detail(ctx, in.ID.ID)
	if bound := guard.Tenant(ctx); err == nil && bound != "" && detail.Tenant != bound {
		err = job.ErrNotFound
	}
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	body := v1.JobDetailOf(detail)
	if s.traceLink != "" && remote(detail.Trace).IsSampled() {
		body.TraceURL = strings.ReplaceAll(s.traceLink, "{trace_id}", body.TraceID)
	}
	return &detailOutput{Body: body}, nil
}
