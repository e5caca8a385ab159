package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLogs bounds how many attempts' logs are shown at once: each can have 32 KB.
const maxLogs = 20

// maxAttemptNumber is the most attempts that a job may have.
const maxAttemptNumber = 1_000_000

// JobLogs is what the handler of a job has logged.
type JobLogs struct {
	JobID    job.ID       `json:"jobId" format:"uuid"`
	Attempts []AttemptLog `json:"attempts" nullable:"false" doc:"The latest attempts that have logged anything, up to 20, oldest first. Attempts can have the same number: fence tells them apart."`
}

// AttemptLog is what one attempt has logged, while it runs or after.
type AttemptLog struct {
	Number  int       `json:"number" doc:"As in the job's attempts."`
	Fence   int64     `json:"fence"`
	Dropped int64     `json:"dropped" doc:"How many lines before these were not kept: of each attempt the last 200 are, or fewer when they have more than 32 KB of text."`
	Lines   []LogLine `json:"lines" nullable:"false" doc:"Oldest first."`
}

// LogLine is one record of a handler.
type LogLine struct {
	Time       time.Time       `json:"time" doc:"By the handler's clock."`
	Level      job.LogLevel    `json:"level" enum:"debug,info,warn,error"`
	Message    string          `json:"message" doc:"As the handler wrote it: it can hold any characters."`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"A JSON object."`
	Truncated  bool            `json:"truncated,omitempty" doc:"Whether the message was cut, or attributes were left out, because they were too long."`
}

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

type logsOutput struct{ Body JobLogs }

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
	out := &logsOutput{Body: JobLogs{JobID: in.ID.ID, Attempts: make([]AttemptLog, 0, len(logs))}}
	for _, log := range logs {
		out.Body.Attempts = append(out.Body.Attempts, logOf(log))
	}
	return out, nil
}

func logOf(log job.AttemptLog) AttemptLog {
	shown := AttemptLog{Number: log.Number, Fence: log.Fence, Dropped: log.Dropped, Lines: make([]LogLine, 0, len(log.Lines))}
	for _, line := range log.Lines {
		shown.Lines = append(shown.Lines, LogLine{
			Time: line.Time.UTC(), Level: line.Level, Message: line.Message, Attributes: line.Attributes, Truncated: line.Truncated,
		})
	}
	return shown
}
