package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxWait bounds a long poll: proxies cut off what is silent for longer.
const maxWait = time.Minute

// patience is how long a client waits for a job to end.
type patience struct{ time.Duration }

// UnmarshalText accepts a Go duration up to maxWait.
func (p *patience) UnmarshalText(text []byte) error {
	var err error
	if p.Duration, err = time.ParseDuration(string(text)); err != nil || p.Duration < 0 || p.Duration > maxWait {
		return fmt.Errorf("must be a duration from 0s to %s, such as 30s", maxWait)
	}
	return nil
}

// Schema describes the wait in the OpenAPI document.
func (patience) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"30s"}}
}

type getInput struct {
	query
	ID   jobID    `path:"id" doc:"The jobId that the submission returned."`
	Wait patience `query:"wait" doc:"Answer when the job is final, or after this time as it is then: a Go duration, 0s to 60s."`
}

func (s *service) addGet(routes huma.API) {
	huma.Register(routes, ownTime(scoped(guard.Read, huma.Operation{
		OperationID: "get-job", Method: http.MethodGet, Path: "/jobs/{id}",
		Summary:            "See what became of a job",
		Description:        "With wait the answer comes as soon as the job is final, or else as it is when the time is over.",
		Tags:               []string{"Jobs"},
		SkipValidateParams: true,
	})), s.get)
}

func (s *service) get(ctx context.Context, in *getInput) (*jobOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout+in.Wait.Duration)
	defer cancel()
	if err := s.mayTouch(ctx, in.ID.ID); err != nil {
		return nil, err
	}
	if in.Wait.Duration > 0 {
		allowTime(in.answer, in.request, in.Wait.Duration)
	}
	view, err := s.await(ctx, in.ID.ID, in.Wait.Duration)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &jobOutput{Body: v1.JobOf(view)}, nil
}

// await returns the job when it is final, the time is over, or the server
// stops, whatever comes first.
func (s *service) await(ctx context.Context, id job.ID, limit time.Duration) (job.View, error) {
	if limit == 0 {
		return s.jobs.Get(ctx, id)
	}
	waiting, cancel := s.untilStopping(ctx, limit)
	defer cancel()
	view, err := s.jobs.Await(waiting, id)
	if err != nil && errors.Is(err, waiting.Err()) && ctx.Err() == nil {
		return s.jobs.Get(ctx, id)
	}
	return view, err
}
