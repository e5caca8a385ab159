package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// submitInput has no body: it is read and decoded here. Huma would decode it
// into a tree, and report positions of its own.
type submitInput struct {
	query
	Key string `header:"Idempotency-Key" doc:"The same as idempotencyKey in the body; bare, or quoted as a structured field's string."`
}

type submitOutput struct {
	Location string `header:"Location" doc:"Where to see what becomes of the job."`
	Body     v1.Accepted
}

func (s *service) addSubmit(routes huma.API) {
	huma.Register(routes, scoped(guard.Submit, huma.Operation{
		OperationID: "submit-job", Method: http.MethodPost, Path: "/jobs",
		Summary:       "Submit a job",
		Description:   "Records the job and answers; it is executed later. With an idempotency key the request can be repeated: the answer names the same job.",
		Tags:          []string{"Jobs"},
		DefaultStatus: http.StatusAccepted,
	}), s.submit)

	// Described only after the registration: a body that huma knows of is
	// one that it reads itself.
	document := routes.OpenAPI()
	document.Paths["/jobs"].Post.RequestBody = &huma.RequestBody{
		Required: true,
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: document.Components.Schemas.Schema(reflect.TypeFor[v1.Submission](), true, "Submission"),
		}},
	}
	document.Components.Schemas.Map()["Submission"].Properties["tags"].Items = wordOf(maxTagChars)
}

func (s *service) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
	share := s.memory.share()
	defer share.release()
	submission, err := s.read(ctx, in.request, share)
	if err != nil {
		return nil, err
	}
	if err := s.take(ctx, in.exchange, guard.Jobs, 1); err != nil {
		return nil, err
	}
	receipt, err := s.jobs.Submit(ctx, submission)
	if err != nil {
		return nil, s.failSubmit(ctx, err)
	}
	return &submitOutput{
		Location: "/jobs/" + receipt.ID.String(),
		Body:     v1.AcceptedOf(receipt),
	}, nil
}

// failSubmit translates an error of Submit.
func (s *service) failSubmit(ctx context.Context, err error) error {
	if errors.Is(err, job.ErrKeyReused) {
		return invalid(at(pointer("idempotencyKey"), "was used for a different job type or payload"))
	}
	return s.fail(ctx, err)
}

// read makes a submission of the request, with every default resolved.
func (s *service) read(ctx context.Context, r *http.Request, share *share) (job.Submission, error) {
	body, err := s.readBody(r, share)
	if err != nil {
		return job.Submission{}, err
	}
	if err := screen(body, firstSpot); err != nil {
		return job.Submission{}, problem(http.StatusBadRequest, err.Error())
	}
	asked, mistakes := decode(body)
	mistakes = append(mistakes, asked.mergeKey(r.Header)...)
	if len(mistakes) > 0 {
		return job.Submission{}, invalid(mistakes...)
	}
	asked.trace = traceOf(r.Header)
	return s.resolve(ctx, asked)
}

// mergeKey takes over the key in the header. It must agree with the one in
// the body.
func (r *request) mergeKey(header http.Header) []v1.Mistake {
	inHeader, found, err := keyOf(header)
	switch {
	case err != nil:
		return []v1.Mistake{at("header."+keyHeader, err.Error())}
	case found && r.key != nil && inHeader != *r.key:
		return []v1.Mistake{at("header."+keyHeader, "differs from idempotencyKey in the body")}
	case found:
		r.key = &inHeader
	}
	return nil
}
