package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// maxBatchJobs bounds a batch that is answered as a whole.
	maxBatchJobs = 10_000
	// maxBatchErrors bounds the answer to a batch in which nothing is right.
	maxBatchErrors = 100
	// itemBytes is about what a decoded submission takes, and the answer to it.
	itemBytes = 512
)

// batchRoutes accept many jobs in one request.
type batchRoutes struct {
	*submitRoutes
	maxBatchBytes int64
	deadline      deadline
}

func (b *batchRoutes) add(r *router) {
	add(r, "POST /jobs/batch", "submit-jobs", guard.Submit, b.submitBatch, ownDeadline, takesBody)
}

type batchInput struct {
	call
	Atomic bool `query:"atomic" default:"true" doc:"Whether to store all of the jobs or none. With false, each job stands alone."`
}

func (b *batchRoutes) submitBatch(ctx context.Context, in *batchInput) (*huma.StreamResponse, error) {
	media := mediaType(in.request.Header)
	switch {
	case media != mediaJSON && media != mediaLines:
		return nil, problem(http.StatusUnsupportedMediaType, "send an array with the header Content-Type: "+mediaJSON+
			", or one job a line with Content-Type: "+mediaLines+", and no Content-Encoding")
	case in.request.Header.Values(keyHeader) != nil:
		return nil, problem(http.StatusBadRequest, "one key cannot name many jobs",
			at("header."+keyHeader, b.keysOfBatch()))
	case media == mediaLines && !in.Atomic:
		share := b.memory.Share()
		if err := share.Hold(intake.StreamBytes); err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(huma.Context) { b.answerLineByLine(ctx, b.deadline, in.call, share) }}, nil
	}
	if err := in.mayTake(ctx, b.guard, guard.Jobs); err != nil {
		return nil, err
	}
	share := b.memory.Share()
	defer share.Release()
	// The server's own deadline is for reading the body.
	ctx, cancel := context.WithTimeout(ctx, b.deadline.usual+intake.ServerOf(in.request).ReadTimeout)
	defer cancel()
	body, err := intake.ReadBody(in.request, b.maxBatchBytes, share)
	if err != nil {
		return nil, err
	}
	next := b.itemsOf(body, media, share)
	if !in.Atomic {
		results, err := b.submitEach(ctx, in.call, next)
		return answerJSON(http.StatusOK, results), err
	}
	jobs, err := b.submitAll(ctx, in.call, next)
	if media == mediaLines {
		return answerLines(jobs), err
	}
	return answerJSON(http.StatusAccepted, v1.BatchAccepted{Accepted: len(jobs), Jobs: jobs}), err
}

// keysOfBatch says why a batch has no key, and what to do instead.
func (b *batchRoutes) keysOfBatch() string {
	if b.cell != (job.Cell{}) {
		return "is not for batches, and in a cell their jobs cannot have keys: submit jobs with keys one by one"
	}
	return "is not for batches: give each job its own idempotencyKey"
}

// items returns one submission after the other, and io.EOF after the last one.
type items func() (submission.Item, error)

// itemsOf reads a batch that is answered as a whole. The share is charged for each item.
func (b *batchRoutes) itemsOf(body []byte, media string, share *intake.Share) items {
	next := submission.NewArray(body, int(b.maxBytes)).Next
	if media == mediaLines {
		lines := intake.NewLines(body, b.maxBytes)
		next = func() (submission.Item, error) {
			line, more := lines.Next()
			if !more {
				return submission.Item{}, io.EOF
			}
			return b.itemOf(line), nil
		}
	}
	count := 0
	return func() (submission.Item, error) {
		item, err := next()
		if err != nil {
			return submission.Item{}, err
		}
		if count++; count > maxBatchJobs {
			return submission.Item{}, problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the batch has more than %d jobs", maxBatchJobs))
		}
		return item, share.Hold(itemBytes)
	}
}

// submitAll stores all of the jobs or none. The answer lists all mistakes.
func (b *batchRoutes) submitAll(ctx context.Context, in call, next items) ([]v1.Accepted, error) {
	batch, err := b.admitAll(ctx, next, traceOf(in.request.Header))
	if err != nil || len(batch) == 0 {
		return []v1.Accepted{}, err
	}
	if err := in.take(ctx, b.guard, guard.Jobs, len(batch)); err != nil {
		return nil, err
	}
	in.allowTime(b.deadline.usual)
	results, err := b.jobs.SubmitAll(ctx, batch)
	if err != nil {
		return nil, err
	}
	jobs := make([]v1.Accepted, len(results))
	var mistakes []v1.Mistake
	for index, result := range results {
		jobs[index] = v1.AcceptedOf(result.Receipt)
		if result.Err != nil && len(mistakes) < maxBatchErrors {
			refused := problemOf(ctx, b.log, result.Err)
			if refused.Status != http.StatusUnprocessableEntity {
				return nil, refused
			}
			mistakes = append(mistakes, within(index, refused.Errors)...)
		}
	}
	if len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	return jobs, nil
}

// admitAll returns the jobs of a batch, or the answer to its mistakes.
func (b *batchRoutes) admitAll(ctx context.Context, next items, trace job.Trace) ([]job.Submission, error) {
	var batch []job.Submission
	var mistakes []v1.Mistake
	for index := 0; len(mistakes) < maxBatchErrors; index++ {
		item, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		wanted, refused := b.admitOne(ctx, item, trace)
		switch {
		case refused == nil:
			batch = append(batch, wanted)
		case refused.Status != http.StatusUnprocessableEntity:
			refused.Errors = within(index, refused.Errors)
			return nil, refused
		default:
			mistakes = append(mistakes, within(index, refused.Errors)...)
		}
	}
	if len(mistakes) > 0 {
		return nil, invalid(mistakes[:min(len(mistakes), maxBatchErrors)]...)
	}
	return batch, nil
}

// within makes locations in an item locations in the batch.
func within(index int, mistakes []v1.Mistake) []v1.Mistake {
	moved := make([]v1.Mistake, len(mistakes))
	for i, mistake := range mistakes {
		if place, inBody := strings.CutPrefix(mistake.Location, "#"); inBody {
			mistake.Location = "#/" + strconv.Itoa(index) + place
		}
		moved[i] = mistake
	}
	return moved
}

// submitEach reads the whole array and then stores each job for itself.
func (b *batchRoutes) submitEach(ctx context.Context, in call, next items) (v1.BatchResults, error) {
	g, trace := results{all: []v1.BatchResult{}}, traceOf(in.request.Header)
	for index := 0; ; index++ {
		item, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return v1.BatchResults{}, err
		}
		if refused := b.admitTo(ctx, &g, item, index, trace); refused != nil && refused.Status >= http.StatusInternalServerError {
			return v1.BatchResults{}, refused
		}
	}
	if len(g.batch) > 0 {
		if err := in.take(ctx, b.guard, guard.Jobs, len(g.batch)); err != nil {
			return v1.BatchResults{}, err
		}
		in.allowTime(b.deadline.usual)
		b.storeEach(ctx, &g, 0, len(g.batch))
	}
	answer := v1.BatchResults{Results: g.all}
	answer.Accepted, answer.Refused = countOf(g.all)
	return answer, nil
}

func answerLines(jobs []v1.Accepted) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", mediaLines)
		ctx.SetStatus(http.StatusAccepted)
		out := bufio.NewWriter(ctx.BodyWriter())
		answers := newAnswers(out)
		var result v1.BatchResult
		for index := range jobs {
			result.Index, result.Job = index, &jobs[index]
			if answers.result(&result) != nil {
				return
			}
		}
		_ = out.Flush()
	}}
}
