package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

const (
	// maxBatchJobs bounds a batch that is answered as a whole.
	maxBatchJobs = 10_000
	// maxBatchErrors bounds the answer to a batch in which nothing is right.
	maxBatchErrors = 100
)

type batchInput struct {
	query
	Atomic bool `query:"atomic" default:"true" doc:"All of the jobs or none; false: each job for itself."`
}

// BatchAccepted is the answer to an atomic batch.
type BatchAccepted struct {
	Accepted int        `json:"accepted"`
	Jobs     []Accepted `json:"jobs" nullable:"false" doc:"In the order sent."`
}

// BatchResult is what became of one submission of a batch: a job, or the
// problem that it would have been answered with alone.
type BatchResult struct {
	Index   int              `json:"index" doc:"The place of the submission in the batch, from 0."`
	Job     *Accepted        `json:"job,omitempty"`
	Problem *huma.ErrorModel `json:"problem,omitempty"`
}

// BatchResults is the answer to a batch of which each job stands for itself.
type BatchResults struct {
	Accepted int           `json:"accepted"`
	Refused  int           `json:"refused"`
	Results  []BatchResult `json:"results" nullable:"false" doc:"In the order sent."`
}

// BatchEnd is the last line of an answer that is sent line by line.
type BatchEnd struct {
	Done     bool             `json:"done" doc:"Whether the whole body was read and answered."`
	Accepted int              `json:"accepted"`
	Refused  int              `json:"refused"`
	Problem  *huma.ErrorModel `json:"problem,omitempty" doc:"Why not, and what comes after the last result was not looked at."`
}

func (s *service) addBatch(routes huma.API) {
	huma.Register(routes, ownTime(scoped(guard.Submit, huma.Operation{
		OperationID: "submit-jobs", Method: http.MethodPost, Path: "/jobs/batch",
		Summary: "Submit many jobs",
		Description: "As an array, or one a line; answered in the same format. Atomic batches are stored whole or not at all. " +
			"With atomic=false each job is accepted or refused for itself; lines are then answered while further ones come in, and may go on without end.",
		Tags:          []string{"Jobs"},
		DefaultStatus: http.StatusAccepted,
	})), s.batch)
	describeBatch(routes.OpenAPI())
}

// describeBatch says what huma does not see: the body that is read and the
// answers that are written here.
func describeBatch(document *huma.OpenAPI) {
	schema := func(of reflect.Type) *huma.Schema { return document.Components.Schemas.Schema(of, true, "") }
	operation := document.Paths["/jobs/batch"].Post
	submission := schema(reflect.TypeFor[Submission]())
	operation.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		mediaJSON:  {Schema: &huma.Schema{Type: huma.TypeArray, Items: submission}},
		mediaLines: {Schema: submission},
	}}
	operation.Responses["202"] = &huma.Response{
		Description: "All of the jobs are durably recorded.",
		Content: map[string]*huma.MediaType{
			mediaJSON: {Schema: schema(reflect.TypeFor[BatchAccepted]())}, mediaLines: {Schema: schema(reflect.TypeFor[BatchResult]())},
		},
	}
	operation.Responses["200"] = &huma.Response{
		Description: "With atomic=false: what became of each.",
		Content: map[string]*huma.MediaType{
			mediaJSON: {Schema: schema(reflect.TypeFor[BatchResults]())},
			mediaLines: {Schema: &huma.Schema{OneOf: []*huma.Schema{
				schema(reflect.TypeFor[BatchResult]()), schema(reflect.TypeFor[BatchEnd]()),
			}}},
		},
	}
}

func (s *service) batch(ctx context.Context, in *batchInput) (*huma.StreamResponse, error) {
	media := mediaType(in.request.Header)
	switch {
	case media != mediaJSON && media != mediaLines:
		return nil, problem(http.StatusUnsupportedMediaType, "send an array with the header Content-Type: "+mediaJSON+
			", or one job a line with Content-Type: "+mediaLines+", and no Content-Encoding")
	case in.request.Header.Values(keyHeader) != nil:
		return nil, problem(http.StatusBadRequest, "one key cannot name many jobs",
			at("header."+keyHeader, "is not for batches: give each job its own idempotencyKey"))
	case media == mediaLines && !in.Atomic:
		share := s.memory.share()
		if err := share.hold(4 * readAtOnce); err != nil { // two buffers and two piles
			return nil, err
		}
		return &huma.StreamResponse{Body: func(huma.Context) { s.stream(ctx, in.exchange, share) }}, nil
	}
	r := in.request
	if r.ContentLength > s.maxBatchBytes {
		return nil, tooLarge(s.maxBatchBytes)
	}
	if err := s.mayTake(ctx, in.exchange, guard.Jobs); err != nil {
		return nil, err
	}
	share := s.memory.share()
	defer share.release()
	if err := share.hold(readAtOnce); err != nil {
		return nil, err
	}
	// The server's own deadline is for reading the body.
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout+serverOf(r).ReadTimeout)
	defer cancel()
	body := share.holding(http.MaxBytesReader(nil, r.Body, s.maxBatchBytes))
	switch {
	case media == mediaLines:
		jobs, err := s.submitAll(ctx, in.exchange, charged{newLines(body, s.maxBodyBytes, nil), share})
		return answerLines(jobs), err
	case in.Atomic:
		jobs, err := s.submitAll(ctx, in.exchange, charged{newArray(body, s.maxBodyBytes), share})
		return answerJSON(http.StatusAccepted, BatchAccepted{Accepted: len(jobs), Jobs: jobs}), err
	}
	results, err := s.submitEach(ctx, in.exchange, charged{newArray(body, s.maxBodyBytes), share})
	return answerJSON(http.StatusOK, results), err
}
