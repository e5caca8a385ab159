package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// submitAll stores all of the jobs or none. Mistakes are told together.
func (s *service) submitAll(ctx context.Context, e exchange, sent items) ([]v1.Accepted, error) {
	batch, err := s.admitAll(ctx, sent, traceOf(e.request.Header))
	if err != nil || len(batch) == 0 {
		return []v1.Accepted{}, err
	}
	if err := s.take(ctx, e, guard.Jobs, len(batch)); err != nil {
		return nil, err
	}
	allowTime(e.answer, e.request, s.requestTimeout)
	results, err := s.jobs.SubmitAll(ctx, batch)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	jobs := make([]v1.Accepted, len(results))
	var mistakes []v1.Mistake
	for index, result := range results {
		jobs[index] = v1.AcceptedOf(result.Receipt)
		if result.Err == nil || len(mistakes) >= maxBatchErrors {
			continue
		}
		if errors.Is(result.Err, job.ErrBadData) {
			mistakes = append(mistakes, at("#/"+strconv.Itoa(index), "has a value that the database cannot store"))
			continue
		}
		answer := s.failSubmit(ctx, result.Err)
		if refusal(answer).Status != http.StatusUnprocessableEntity {
			return nil, answer
		}
		mistakes = append(mistakes, within(index, refusal(answer).Errors)...)
	}
	if len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	return jobs, nil
}

// admitAll returns the submissions, or the answer to their mistakes.
func (s *service) admitAll(ctx context.Context, sent items, trace job.Trace) ([]job.Submission, error) {
	var batch []job.Submission
	var mistakes []v1.Mistake
	for index := 0; len(mistakes) < maxBatchErrors; index++ {
		next, err := nextOf(sent, index)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		submission, err := s.admit(ctx, next, trace)
		switch {
		case err == nil && mistakes == nil:
			batch = append(batch, submission)
		case err == nil:
		case refusal(err).Status != http.StatusUnprocessableEntity:
			return nil, ofItem(index, err)
		default:
			batch = nil
			mistakes = append(mistakes, within(index, refusal(err).Errors)...)
		}
	}
	if len(mistakes) > 0 {
		return nil, invalid(mistakes[:min(len(mistakes), maxBatchErrors)]...)
	}
	return batch, nil
}

// nextOf returns the next item of a batch that is answered as a whole.
func nextOf(sent items, index int) (item, error) {
	next, err := sent.next()
	if err == nil && index == maxBatchJobs {
		err = problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the batch has more than %d jobs", maxBatchJobs))
	}
	return next, err
}
