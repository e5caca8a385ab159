package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// diagnoseWithin bounds a diagnosis, which looks at every job.
	diagnoseWithin = 2 * time.Minute
	// diagnoseAgainSeconds is told to those who come while one is under way.
	diagnoseAgainSeconds = "10"
)

// Diagnosis is what was found wrong, if anything.
type Diagnosis struct {
	Severity job.Severity `json:"severity" enum:"ok,warning,problem" doc:"The worst of the checks."`
	Checks   []Check      `json:"checks" nullable:"false"`
}

// Check is one thing that was looked at.
type Check struct {
	Name     string       `json:"name"`
	Severity job.Severity `json:"severity" enum:"ok,warning,problem"`
	Summary  string       `json:"summary"`
	Details  []string     `json:"details" nullable:"false" doc:"Examples, not all."`
	Remedy   string       `json:"remedy,omitempty" doc:"What to do; absent when there is nothing to be done."`
}

func diagnosisOf(checks []job.Check) Diagnosis {
	found := Diagnosis{Severity: job.Fine, Checks: make([]Check, 0, len(checks))}
	for _, c := range checks {
		found.Severity = worse(found.Severity, c.Severity)
		found.Checks = append(found.Checks, Check{
			Name: c.Name, Severity: c.Severity, Summary: c.Summary, Details: append([]string{}, c.Details...), Remedy: c.Remedy,
		})
	}
	return found
}

func worse(a, b job.Severity) job.Severity {
	for _, severity := range []job.Severity{job.Problem, job.Warning} {
		if a == severity || b == severity {
			return severity
		}
	}
	return job.Fine
}

type diagnosisOutput struct{ Body Diagnosis }

func (s *service) addDoctor(routes huma.API) {
	huma.Register(routes, ownTime(acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "diagnose", Method: http.MethodGet, Path: "/debug/doctor",
		Summary: "Look for what is wrong",
		Description: "Reads the whole ledger, which may take up to two minutes. Answers 200 whatever it finds, " +
			"and 503 while another diagnosis is under way.",
		Tags: []string{"Operation"},
	}))), s.diagnose)
}

func (s *service) diagnose(ctx context.Context, in *plainInput) (*diagnosisOutput, error) {
	if !s.diagnosing.TryLock() {
		return nil, huma.ErrorWithHeaders(
			problem(http.StatusServiceUnavailable, "another diagnosis is under way"),
			http.Header{"Retry-After": {diagnoseAgainSeconds}})
	}
	defer s.diagnosing.Unlock()
	allowTime(in.answer, in.request, diagnoseWithin)
	ctx, cancel := s.untilStopping(ctx, diagnoseWithin)
	defer cancel()
	checks, err := s.operations.Diagnose(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, huma.ErrorWithHeaders(
			problem(http.StatusServiceUnavailable, "the diagnosis took longer than "+diagnoseWithin.String()),
			http.Header{"Retry-After": {diagnoseAgainSeconds}})
	case err != nil:
		return nil, s.fail(ctx, err)
	}
	return &diagnosisOutput{Body: diagnosisOf(checks)}, nil
}
