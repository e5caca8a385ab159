package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// resolve makes a submission of what was asked for, with every default filled
// in, or returns the answer that refuses it. Every submission goes through
// it, however it was sent. The places that the answer names lie within the
// submission.
func (s *service) resolve(ctx context.Context, asked request) (job.Submission, error) {
	tenant := valueOr(asked.tenant, job.DefaultTenant)
	if bound := guard.Tenant(ctx); bound != "" {
		if asked.tenant != nil && *asked.tenant != bound {
			return job.Submission{}, problem(http.StatusForbidden, "not allowed for this tenant",
				at(pointer("tenant"), "is not the tenant of the credentials"))
		}
		tenant = bound
	}
	spec, err := s.jobs.TypeSpec(ctx, asked.jobType)
	switch {
	case errors.Is(err, job.ErrUnknownType):
		return job.Submission{}, invalid(at(pointer("jobType"), "no handler has declared this job type"))
	case err != nil:
		return job.Submission{}, s.fail(ctx, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return job.Submission{}, s.fail(ctx, fmt.Errorf("make job id: %w", err))
	}
	submission := job.Submission{
		ID: job.ID(id), Type: asked.jobType, Tenant: tenant, Payload: asked.payload,
		IdempotencyKey: valueOr(asked.key, ""), Priority: int16(valueOr(asked.priority, 0)),
		RunAt: valueOr(asked.runAt, time.Time{}), Delay: valueOr(asked.delay, 0), Hold: valueOr(asked.hold, false),
		MaxAttempts: valueOr(asked.maxAttempts, spec.MaxAttempts), Timeout: valueOr(asked.timeout, spec.Timeout),
		Tags: valueOr(asked.tags, []string{}), Trace: asked.trace,
	}
	if submission.Payload == nil {
		submission.Payload = []byte("null")
	}
	mistakes, err := s.schemas.check(ctx, spec, submission.Payload)
	if err != nil {
		return job.Submission{}, err
	}
	if len(mistakes) > 0 {
		// A replay is answered like the first, also when its type's schema has
		// become stricter since.
		replay, err := s.isReplay(ctx, submission)
		switch {
		case err != nil:
			return job.Submission{}, s.fail(ctx, err)
		case !replay:
			return job.Submission{}, invalid(mistakes...)
		}
	}
	return submission, nil
}

func (s *service) isReplay(ctx context.Context, submission job.Submission) (bool, error) {
	if submission.IdempotencyKey == "" {
		return false, nil
	}
	return s.jobs.Known(ctx, submission)
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
