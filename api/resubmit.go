package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// resubmitRoutes submit jobs anew.
type resubmitRoutes struct {
	*submitRoutes

	operations Operations
}

func (s *resubmitRoutes) add(r *router) {
	add(r, "POST /debug/jobs/{id}/resubmit", "resubmit-job", guard.Operate, s.resubmit, accepts, takesBody)
}

type resubmitInput struct {
	call
	ID  job.ID `path:"id" format:"uuid" doc:"The jobId that the submission returned."`
	Key string `header:"Idempotency-Key" doc:"Same as idempotencyKey in the body. Bare, or quoted as a structured field's string."`
}

// resubmit makes a new job. The original stays as it is, in whatever state.
func (s *resubmitRoutes) resubmit(ctx context.Context, in *resubmitInput) (*submitOutput, error) {
	share := s.memory.Share()
	defer share.Release()
	header := in.request.Header
	body, err := intake.ReadBody(in.request, s.maxBytes, share)
	if err != nil {
		return nil, err
	}
	if media := mediaType(header); len(body) > 0 && media != mediaJSON && media != mediaPatch {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/merge-patch+json or application/json, and no Content-Encoding")
	}
	original, err := s.original(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	item := submission.ParseResubmission(body, original)
	item.ResubmissionOf = in.ID
	s.mergeKey(&item, header.Values(keyHeader))
	wanted, err := s.admit(ctx, item, traceOf(header))
	if err != nil {
		if bytes.Equal(item.Payload, original.Payload) {
			err = withoutPlaces(ctx, err)
		}
		return nil, err
	}
	if err := in.take(ctx, s.guard, guard.Jobs, 1); err != nil {
		return nil, err
	}
	receipt, err := s.jobs.Submit(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &submitOutput{Location: "/jobs/" + receipt.ID.String(), Body: v1.AcceptedOf(receipt)}, nil
}

// original returns what the job was submitted with. Terms that its type has filled in are
// left out: another payload may have others.
func (s *resubmitRoutes) original(ctx context.Context, id job.ID) (job.Submission, error) {
	detail, err := s.operations.Detail(ctx, id)
	if bound := guard.Tenant(ctx); err == nil && bound != "" && detail.Tenant != bound {
		err = job.ErrNotFound
	}
	switch {
	case err != nil:
		return job.Submission{}, err
	case detail.ErasedAt != nil:
		return job.Submission{}, job.ErrErased
	}
	audit.Concerns(ctx, "tenant", detail.Tenant)
	original := job.Submission{
		Type: detail.Type, Tenant: detail.Tenant, Payload: detail.Payload, Priority: detail.Priority, MaxAttempts: detail.MaxAttempts,
		Timeout: detail.Timeout, Tags: detail.Tags, Terms: detail.Terms, CallbackURL: detail.Callback,
	}
	spec, err := s.jobs.TypeSpec(ctx, detail.Type)
	switch {
	case errors.Is(err, job.ErrUnknownType):
		return original, nil // It is refused later, with its place.
	case err != nil:
		return job.Submission{}, err
	}
	original.Terms = submission.Own(original, spec.Terms)
	return original, nil
}

// withoutPlaces hides what an error says of a payload from callers who may not see it: its
// schema has changed since.
func withoutPlaces(ctx context.Context, err error) error {
	var refused *v1.Problem
	if guard.SeesPayloads(ctx) || !errors.As(err, &refused) {
		return err
	}
	shown := *refused
	shown.Errors = nil
	place := submission.Pointer("payload")
	hidden := false
	for _, mistake := range refused.Errors {
		switch {
		case mistake.Location != place && !strings.HasPrefix(mistake.Location, place+"/"):
			shown.Errors = append(shown.Errors, mistake)
		case !hidden:
			shown.Errors = append(shown.Errors, at(place, "is not what the job type takes now: send another payload"))
			hidden = true
		}
	}
	return &shown
}
