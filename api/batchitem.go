package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// admit makes a submission of an item, as if it had been sent alone, or
// returns the answer that refuses it. Nothing of the item's text is kept but
// a copy of the payload.
func (s *service) admit(ctx context.Context, sent item, trace job.Trace) (job.Submission, error) {
	if sent.tooLong {
		return job.Submission{}, problem(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the submission is larger than %d bytes: %s", s.maxBodyBytes, sent.start))
	}
	if err := screen(sent.text, sent.start); err != nil {
		return job.Submission{}, problem(http.StatusBadRequest, err.Error())
	}
	asked, mistakes := decode(sent.text)
	if len(mistakes) > 0 {
		return job.Submission{}, invalid(mistakes...)
	}
	asked.payload, asked.trace = bytes.Clone(asked.payload), trace
	submission, err := s.resolve(ctx, asked)
	submission.OneOfMany = true
	return submission, err
}

// refusal returns the answer in an error.
func refusal(err error) *v1.Problem {
	var answer *v1.Problem
	if !errors.As(err, &answer) {
		return problem(http.StatusInternalServerError, "internal error")
	}
	return answer
}

// within makes places in an item places in the whole batch.
func within(index int, errs []v1.Mistake) []v1.Mistake {
	moved := make([]v1.Mistake, len(errs))
	for i, e := range errs {
		moved[i] = e
		if place, inBody := strings.CutPrefix(e.Location, "#"); inBody {
			moved[i] = at("#/"+strconv.Itoa(index)+place, e.Message)
		}
	}
	return moved
}

// ofItem makes the answer to one item that to the whole batch.
func ofItem(index int, err error) error {
	answer := *refusal(err)
	if answer.Status >= http.StatusInternalServerError {
		return err
	}
	answer.Errors = within(index, answer.Errors)
	return &answer
}
