// Package resolve makes jobs of submissions: it checks what was sent, and fills in every
// default. All submissions go through it, whoever sent them: clients over HTTP, handlers,
// or schedules.
package resolve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Jobs is what a resolver needs to know.
type Jobs interface {
	// TypeSpec returns job.ErrUnknownType for a type that cannot be submitted.
	TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error)
	// Known reports whether the submission's key has already created a job of the same
	// type and payload.
	Known(ctx context.Context, submission job.Submission) (bool, error)
}

// Resolver is safe for concurrent use.
type Resolver struct {
	payloads *payloads
	cell     job.Cell
}

// New returns a resolver for the jobs of a cell, if any. It logs schemas that cannot be used.
func New(log *slog.Logger, cell job.Cell) *Resolver {
	return &Resolver{payloads: newPayloads(log), cell: cell}
}

// Text is Item for a submission that is the whole text.
func (r *Resolver) Text(ctx context.Context, jobs Jobs, text []byte, tenant string, trace job.Trace) (job.Submission, error) {
	return r.Item(ctx, jobs, submission.Parse(text, 1), tenant, trace)
}

// Item makes a job of what was sent, with a new id and every default filled in. The job
// must be of the tenant given, unless that is empty. If the submission is refused, the
// error is a *v1.Problem, whose locations lie within the submission, also for a job type
// that nobody has declared (job.ErrUnknownType); other errors are of jobs.
func (r *Resolver) Item(ctx context.Context, jobs Jobs, item submission.Item, tenant string, trace job.Trace) (job.Submission, error) {
	switch {
	case item.Problem != nil:
		return job.Submission{}, item.Problem
	case len(item.Mistakes) > 0:
		return job.Submission{}, v1.Invalid(item.Mistakes...)
	}
	wanted := item.Submission
	wanted.Trace = trace
	if err := checkCallback(ctx, jobs, wanted); err != nil {
		return job.Submission{}, err
	}
	switch {
	case tenant != "" && wanted.Tenant != "" && wanted.Tenant != tenant:
		return job.Submission{}, v1.NewProblem(http.StatusForbidden, "not allowed for this tenant",
			mistake(submission.Pointer("tenant"), "is not the tenant of the credentials"))
	case tenant != "":
		wanted.Tenant = tenant
	case wanted.Tenant == "":
		wanted.Tenant = job.DefaultTenant
	}
	spec, err := jobs.TypeSpec(ctx, wanted.Type)
	switch {
	case errors.Is(err, job.ErrUnknownType):
		refused := v1.Invalid(mistake(submission.Pointer("jobType"), "no handler has declared this job type"))
		return job.Submission{}, errors.Join(refused, err)
	case err != nil:
		return job.Submission{}, err
	}
	if wanted.MaxAttempts == 0 {
		wanted.MaxAttempts = spec.MaxAttempts
	}
	if wanted.Timeout == 0 {
		wanted.Timeout = spec.Timeout
	}
	mistakes := submission.Complete(&wanted, spec.Terms)
	if wanted.Unique != nil {
		wanted.Unique.Digest = submission.Digest(wanted.Tenant, wanted.Type, wanted.Payload, item.UniqueBy)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return job.Submission{}, fmt.Errorf("make job id: %w", err)
	}
	wanted.ID = r.cell.Stamp(job.ID(id))
	return wanted, r.checkNow(ctx, jobs, spec, wanted, mistakes)
}

// checkNow refuses what cannot be accepted as things are: the mistakes, a payload that does
// not match its schema, and a job that would expire before it is due. A replay is answered
// like the first submission, even if the job type has become stricter since.
func (r *Resolver) checkNow(ctx context.Context, jobs Jobs, spec job.TypeSpec, wanted job.Submission, mistakes []v1.Mistake) error {
	unfit, err := r.payloads.check(ctx, spec, wanted.Payload)
	if err != nil {
		return err
	}
	mistakes = slices.Concat(mistakes, checkTerms(wanted.Terms), checkExpiry(wanted, time.Now()), unfit)
	if len(mistakes) == 0 {
		return nil
	}
	if wanted.IdempotencyKey != "" {
		if replay, err := jobs.Known(ctx, wanted); err != nil || replay {
			return err
		}
	}
	return v1.Invalid(mistakes[:min(len(mistakes), submission.MaxMistakes)]...)
}

// checkTerms refuses terms of a key that is not there.
func checkTerms(terms job.Terms) (mistakes []v1.Mistake) {
	if terms.ConcurrencyKey != "" {
		return nil
	}
	if terms.ConcurrencyLimit != 0 {
		mistakes = append(mistakes, mistake(submission.Pointer("concurrencyLimit"), "needs concurrencyKey"))
	}
	if terms.OnConflict != "" {
		mistakes = append(mistakes, mistake(submission.Pointer("onConflict"), "needs concurrencyKey"))
	}
	return mistakes
}

// checkExpiry refuses a job that could not start before it expires.
func checkExpiry(wanted job.Submission, now time.Time) []v1.Mistake {
	due := now.Add(wanted.Delay)
	if wanted.RunAt.After(now) {
		due = wanted.RunAt
	}
	switch {
	case wanted.TTL > 0 && !now.Add(wanted.TTL).After(due):
		return []v1.Mistake{mistake(submission.Pointer("ttl"), "ends before runAt")}
	case wanted.ExpiresAt.IsZero():
		return nil
	case !wanted.ExpiresAt.After(now):
		return []v1.Mistake{mistake(submission.Pointer("expiresAt"), "must be in the future")}
	case !wanted.ExpiresAt.After(due):
		return []v1.Mistake{mistake(submission.Pointer("expiresAt"), "is before the end of delay")}
	}
	return nil
}

func mistake(location, message string) v1.Mistake {
	return v1.Mistake{Location: location, Message: message}
}
