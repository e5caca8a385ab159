package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	// diagnoseWithin bounds a diagnosis, which looks at every job.
	diagnoseWithin = 2 * time.Minute
	// diagnoseAgain is the Retry-After while one is under way.
	diagnoseAgain = 10 * time.Second
)

type diagnosisOutput struct{ Body v1.Diagnosis }

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
		return nil, diagnoseLater("another diagnosis is under way")
	}
	defer s.diagnosing.Unlock()
	allowTime(in.answer, in.request, diagnoseWithin)
	ctx, cancel := s.untilStopping(ctx, diagnoseWithin)
	defer cancel()
	checks, err := s.operations.Diagnose(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, diagnoseLater("the diagnosis took longer than " + diagnoseWithin.String())
	case err != nil:
		return nil, s.fail(ctx, err)
	}
	return &diagnosisOutput{Body: v1.DiagnosisOf(checks)}, nil
}

func diagnoseLater(why string) *v1.Problem {
	p := unavailable(why)
	p.RetryAfter = diagnoseAgain
	return p
}
