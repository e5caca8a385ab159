package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLogs bounds how many attempts' logs are shown at once: each can have 32 KB.
const maxLogs = 20

// maxAttemptNumber is the most attempts that a job may have.
const maxAttemptNumber = 1_000_000

type logsInput struct {
	query
	ID      jobID         `path:"id" doc:"The jobId that the submission returned."`
	Attempt attemptNumber `query:"attempt" doc:"Only attempts of this number."`
}

// attemptNumber is the number of an attempt; 0 for none.
type attemptNumber struct{ n int }

// UnmarshalText accepts a whole decimal number.
func (n *attemptNumber) UnmarshalText(text []byte) error {
	number, err := strconv.Atoi(string(text))
	if err != nil || number < 1 || number > maxAttemptNumber {
		return errors.New("must be a whole number from 1 to 1000000")
	}
	n.n = number
	return nil
}

// Schema describes the number in the OpenAPI document.
func (attemptNumber) Schema(huma.Registry) *huma.Schema {
	least, most := 1.0, float64(maxAttemptNumber)
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
}

type logsOutput struct{ Body v1.JobLogs }

func (s *service) addLogs(routes huma.API) {
	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "get-job-logs", Method: http.MethodGet, Path: "/debug/jobs/{id}/logs",
		Summary:            "See what a job's handler has logged",
		Description:        "Attempt by attempt, also while one runs: its lines are there within a second or two.",
		Tags:               []string{"Operation"},
		SkipValidateParams: true,
	}), s.logs)
}

func (s *service) logs(ctx context.Context, in *logsInput) (*logsOutput, error) {
	if err := s.mayTouch(ctx, in.ID.ID); err != nil {
		return nil, err
	}
	logs, err := s.operations.Logs(ctx, in.ID.ID, job.LogFilter{Number: in.Attempt.n, Limit: maxLogs})
	if err == nil && len(logs) == 0 {
		_, err = s.jobs.Get(ctx, in.ID.ID) // there may be no such job
	}
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &logsOutput{Body: v1.JobLogsOf(in.ID.ID, logs)}, nil
}
