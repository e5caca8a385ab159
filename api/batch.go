package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
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
	submission := schema(reflect.TypeFor[v1.Submission]())
	operation.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		mediaJSON:  {Schema: &huma.Schema{Type: huma.TypeArray, Items: submission}},
		mediaLines: {Schema: submission},
	}}
	operation.Responses["202"] = &huma.Response{
		Description: "All of the jobs are durably recorded.",
		Content: map[string]*huma.MediaType{
			mediaJSON: {Schema: schema(reflect.TypeFor[v1.BatchAccepted]())}, mediaLines: {Schema: schema(reflect.TypeFor[v1.BatchResult]())},
		},
	}
	operation.Responses["200"] = &huma.Response{
		Description: "With atomic=false: what became of each.",
		Content: map[string]*huma.MediaType{
			mediaJSON: {Schema: schema(reflect.TypeFor[v1.BatchResults]())},
			mediaLines: {Schema: &huma.Schema{OneOf: []*huma.Schema{
				schema(reflect.TypeFor[v1.BatchResult]()), schema(reflect.TypeFor[v1.BatchEnd]()),
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
		return answerJSON(http.StatusAccepted, v1.BatchAccepted{Accepted: len(jobs), Jobs: jobs}), err
	}
	results, err := s.submitEach(ctx, in.exchange, charged{newArray(body, s.maxBodyBytes), share})
	return answerJSON(http.StatusOK, results), err
}
