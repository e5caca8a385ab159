package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// DeadLetter is a dead-lettered job as operators inspect it.
type DeadLetter struct {
	JobID     job.ID    `json:"jobId" format:"uuid"`
	JobType   string    `json:"jobType"`
	Tenant    string    `json:"tenant"`
	DeadAt    time.Time `json:"deadAt"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"lastError"`
}

type limitInput struct {
	Limit limit `query:"limit" doc:"At most so many; taken as 1 or 1000 when it lies outside."`
}

// limit is a number that is clamped, however large, rather than refused. It
// stays 0 when the request has none; no text sets it to 0.
type limit struct{ n int }

func (l limit) value() int {
	if l.n == 0 {
		return defaultLimit
	}
	return l.n
}

// UnmarshalText accepts whole decimal numbers of any length.
func (l *limit) UnmarshalText(text []byte) error {
	digits, negative := strings.CutPrefix(string(text), "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return errors.New("not a whole number")
	}
	l.n = 0
	for _, digit := range digits {
		l.n = min(l.n*10+int(digit-'0'), maxLimit)
	}
	if negative {
		l.n = 1
	}
	l.n = max(l.n, 1)
	return nil
}

// Schema describes the limit in the OpenAPI document.
func (limit) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Default: defaultLimit}
}

type deadLettersOutput struct {
	Body struct {
		DeadLetters []DeadLetter `json:"deadLetters" nullable:"false" doc:"Newest first."`
	}
}

type redriveOutput struct {
	Body struct {
		Count int `json:"count" doc:"How many jobs were requeued."`
	}
}

func (s *service) addDeadLetters(routes huma.API) {
	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "list-dead-letters", Method: http.MethodGet, Path: "/dead-letter",
		Summary: "Inspect dead-lettered jobs", Tags: []string{"Dead letters"},
		// The limit is a number by its schema and clamps itself; huma would
		// check the text it was made from.
		SkipValidateParams: true,
	}), s.deadLetters)

	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "retry-dead-letters", Method: http.MethodPost, Path: "/dead-letter/retry",
		Summary: "Requeue dead-lettered jobs", Tags: []string{"Dead letters"},
		SkipValidateParams: true,
	}), s.redrive)
}

func (s *service) deadLetters(ctx context.Context, in *limitInput) (*deadLettersOutput, error) {
	letters, err := s.jobs.DeadLetters(ctx, job.DeadLetterFilter{Limit: in.Limit.value()})
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	out := &deadLettersOutput{}
	out.Body.DeadLetters = make([]DeadLetter, 0, len(letters))
	for _, d := range letters {
		out.Body.DeadLetters = append(out.Body.DeadLetters, DeadLetter{
			JobID: d.ID, JobType: d.Type, Tenant: d.Tenant, DeadAt: d.DeadAt.UTC(),
			Attempts: d.Attempts, LastError: d.LastError,
		})
	}
	return out, nil
}

func (s *service) redrive(ctx context.Context, in *limitInput) (*redriveOutput, error) {
	count, err := s.jobs.Redrive(ctx, job.DeadLetterFilter{Limit: in.Limit.value()})
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	out := &redriveOutput{}
	out.Body.Count = count
	return out, nil
}
