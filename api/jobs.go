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

// jobID is the id in a path.
type jobID struct{ job.ID }

// Schema describes the id in the OpenAPI document.
func (jobID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "uuid"}
}

type jobInput struct {
	query
	ID jobID `path:"id" doc:"The jobId that the submission returned."`
}

type jobOutput struct{ Body v1.Job }

func (s *service) addJobs(routes huma.API) {
	s.addGet(routes)
	s.addList(routes)

	huma.Register(routes, scoped(guard.Submit, huma.Operation{
		OperationID: "cancel-job", Method: http.MethodPost, Path: "/jobs/{id}/cancel",
		Summary:     "Cancel a job",
		Description: "A job that waits is canceled at once. A running one is asked to stop, and is RUNNING until it has. Answers 409 for a job that has succeeded or failed.",
		Tags:        []string{"Jobs"},
	}), s.onJob(s.jobs.Cancel, s.fail))

	huma.Register(routes, scoped(guard.Submit, huma.Operation{
		OperationID: "hold-job", Method: http.MethodPost, Path: "/jobs/{id}/hold",
		Summary:     "Keep a scheduled job until it is released",
		Description: "Answers 409 for a job that is not waiting for its time.",
		Tags:        []string{"Jobs"},
	}), s.onJob(s.jobs.Hold, s.fail))

	huma.Register(routes, scoped(guard.Submit, huma.Operation{
		OperationID: "release-job", Method: http.MethodPost, Path: "/jobs/{id}/release",
		Summary:     "Make a held or scheduled job eligible now",
		Description: "Answers 409 for a job that is not waiting for its release or its time.",
		Tags:        []string{"Jobs"},
	}), s.onJob(s.jobs.Release, s.fail))

	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "requeue-job", Method: http.MethodPost, Path: "/jobs/{id}/requeue",
		Summary:     "Give a dead-lettered job all its attempts again",
		Description: "Answers 400 for a job that is not dead-lettered.",
		Tags:        []string{"Dead letters"},
	}), s.requeue)
}

// onJob handles the routes that name one job and answer with it. To callers
// that are bound to another tenant the job does not exist. The spans of such
// requests lead to the job's trace.
func (s *service) onJob(
	do func(context.Context, job.ID) (job.View, error), fail func(context.Context, error) error,
) func(context.Context, *jobInput) (*jobOutput, error) {
	return func(ctx context.Context, in *jobInput) (*jobOutput, error) {
		if err := s.mayTouch(ctx, in.ID.ID); err != nil {
			return nil, err
		}
		view, err := do(ctx, in.ID.ID)
		if err != nil {
			return nil, fail(ctx, err)
		}
		linkToJob(ctx, view.Trace)
		return &jobOutput{Body: v1.JobOf(view)}, nil
	}
}

func (s *service) requeue(ctx context.Context, in *jobInput) (*jobOutput, error) {
	if err := s.take(ctx, in.exchange, guard.Requeue, 1); err != nil {
		return nil, err
	}
	return s.onJob(s.jobs.Requeue, s.failRequeue)(ctx, in)
}

// failRequeue answers 400, not 409, for the wrong state: the contract that
// clients of requeue were promised.
func (s *service) failRequeue(ctx context.Context, err error) error {
	if errors.Is(err, job.ErrWrongState) {
		return problem(http.StatusBadRequest, "the job is not dead-lettered")
	}
	return s.fail(ctx, err)
}
