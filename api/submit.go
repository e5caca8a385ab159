package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Accepted is the answer to a submission. It is the same whether the
// submission made the job or found it.
type Accepted struct {
	JobID     job.ID     `json:"jobId" format:"uuid"`
	JobType   string     `json:"jobType"`
	Status    job.Status `json:"status" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

// submitInput keeps the request, so that its body is read and decoded here:
// huma would decode it into a tree, and report positions of its own.
type submitInput struct {
	Key     string `header:"Idempotency-Key" doc:"The same as idempotencyKey in the body; bare, or quoted as a structured field's string."`
	request *http.Request
}

// Resolve is called by huma before the operation.
func (in *submitInput) Resolve(ctx huma.Context) []error {
	in.request, _ = humachi.Unwrap(ctx)
	return nil
}

type submitOutput struct {
	Location string `header:"Location" doc:"Where to see what becomes of the job."`
	Body     Accepted
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
			Schema: document.Components.Schemas.Schema(reflect.TypeFor[Submission](), true, "Submission"),
		}},
	}
}

func (s *service) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
	submission, err := s.read(ctx, in.request)
	if err != nil {
		return nil, err
	}
	receipt, err := s.jobs.Submit(ctx, submission)
	switch {
	case errors.Is(err, job.ErrKeyReused):
		return nil, invalid(at(pointer("idempotencyKey"), "was used for a different job type or payload"))
	case err != nil:
		return nil, s.fail(ctx, err)
	}
	return &submitOutput{
		Location: "/jobs/" + receipt.ID.String(),
		Body: Accepted{
			JobID: receipt.ID, JobType: receipt.Type, Status: receipt.State.Status(),
			CreatedAt: receipt.CreatedAt.UTC(), UpdatedAt: receipt.UpdatedAt.UTC(),
		},
	}, nil
}

// read makes a submission of the request, with every default resolved.
func (s *service) read(ctx context.Context, r *http.Request) (job.Submission, error) {
	body, err := s.readBody(r)
	if err != nil {
		return job.Submission{}, err
	}
	if err := screen(body); err != nil {
		return job.Submission{}, problem(http.StatusBadRequest, err.Error())
	}
	asked, mistakes := decode(body)
	key, mistake := mergeKeys(asked.key, r.Header)
	if mistake != nil {
		mistakes = append(mistakes, mistake)
	}
	if len(mistakes) > 0 {
		return job.Submission{}, invalid(mistakes...)
	}
	spec, err := s.jobs.TypeSpec(ctx, asked.jobType)
	switch {
	case errors.Is(err, job.ErrUnknownType):
		return job.Submission{}, invalid(at(pointer("jobType"), "no handler has declared this job type"))
	case err != nil:
		return job.Submission{}, s.fail(ctx, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return job.Submission{}, s.fail(ctx, fmt.Errorf("make job id: %w", err))
	}
	submission := asked.resolve(spec)
	submission.ID = job.ID(id)
	submission.IdempotencyKey = key
	submission.Trace = traceOf(r.Header)
	return submission, nil
}

// mergeKeys returns the key from the body or the header; they must agree.
func mergeKeys(inBody *string, header http.Header) (string, *huma.ErrorDetail) {
	inHeader, found, err := keyOf(header)
	switch {
	case err != nil:
		return "", at("header."+keyHeader, err.Error())
	case found && inBody != nil && inHeader != *inBody:
		return "", at("header."+keyHeader, "differs from idempotencyKey in the body")
	case inBody != nil:
		return *inBody, nil
	}
	return inHeader, nil
}

// resolve fills in what was not asked for.
func (r request) resolve(spec job.TypeSpec) job.Submission {
	s := job.Submission{
		Type: r.jobType, Tenant: valueOr(r.tenant, job.DefaultTenant), Payload: r.payload,
		Priority: int16(valueOr(r.priority, 0)), Delay: valueOr(r.delay, 0), RunAt: valueOr(r.runAt, time.Time{}),
		Hold: valueOr(r.hold, false), Tags: valueOr(r.tags, []string{}),
		MaxAttempts: valueOr(r.maxAttempts, spec.MaxAttempts), Timeout: valueOr(r.timeout, spec.Timeout),
	}
	if s.Payload == nil {
		s.Payload = []byte("null")
	}
	return s
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
