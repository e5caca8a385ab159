package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const keyHeader = "Idempotency-Key"

// submitRoutes accept jobs, one by one.
type submitRoutes struct {
	jobs     Jobs
	guard    *guard.Guard
	payloads *payloads
	memory   *intake.Memory
	maxBytes int64 // of a submission
	log      *slog.Logger
}

func (s *submitRoutes) add(r *router) {
	add(r, "POST /jobs", "submit-job", guard.Submit, s.submit, accepts)
}

// submitInput has no body. The package submission reads the body in one pass, where
// huma would decode it into a tree.
type submitInput struct {
	call
	Key string `header:"Idempotency-Key" doc:"Same as idempotencyKey in the body. Bare, or quoted as a structured field's string."`
}

type submitOutput struct {
	Location string `header:"Location" doc:"Where to see the job."`
	Body     v1.Accepted
}

func (s *submitRoutes) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
	share := s.memory.Share()
	defer share.Release()
	header := in.request.Header
	if mediaType(header) != mediaJSON {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json and no Content-Encoding")
	}
	body, err := intake.ReadBody(in.request, s.maxBytes, share)
	if err != nil {
		return nil, err
	}
	item := submission.Parse(body, 1)
	mergeKey(&item, header.Values(keyHeader))
	wanted, err := s.admit(ctx, item, traceOf(header))
	if err != nil {
		return nil, err
	}
	if err := in.take(ctx, s.guard, guard.Jobs, 1); err != nil {
		return nil, err
	}
	receipt, err := s.jobs.Submit(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &submitOutput{Location: "/jobs/" + receipt.ID.String(), Body: v1.AcceptedOf(receipt)}, nil
}

// mergeKey uses the idempotency key of the header. It must agree with the key in the
// body.
func mergeKey(item *submission.Item, fields []string) {
	key, err := submission.KeyOf(fields)
	switch {
	case err == nil && key != "" && item.IdempotencyKey != "" && key != item.IdempotencyKey:
		err = errors.New("differs from idempotencyKey in the body")
	case err == nil && key != "":
		item.IdempotencyKey = key
	}
	if err != nil {
		item.Mistakes = append(item.Mistakes, at("header."+keyHeader, err.Error()))
	}
}

// admit makes a job of what a client sent, with every default filled in. An error
// refuses it; its locations lie within the submission. Every submission goes
// through here, however it was sent.
func (s *submitRoutes) admit(ctx context.Context, item submission.Item, trace job.Trace) (job.Submission, error) {
	switch {
	case item.Problem != nil:
		return job.Submission{}, item.Problem
	case len(item.Mistakes) > 0:
		return job.Submission{}, invalid(item.Mistakes...)
	}
	wanted := item.Submission
	wanted.Trace = trace
	bound := guard.Tenant(ctx)
	switch {
	case bound != "" && wanted.Tenant != "" && wanted.Tenant != bound:
		return job.Submission{}, problem(http.StatusForbidden, "not allowed for this tenant",
			at(submission.Pointer("tenant"), "is not the tenant of the credentials"))
	case bound != "":
		wanted.Tenant = bound
	case wanted.Tenant == "":
		wanted.Tenant = job.DefaultTenant
	}
	spec, err := s.jobs.TypeSpec(ctx, wanted.Type)
	switch {
	case errors.Is(err, job.ErrUnknownType):
		return job.Submission{}, invalid(at(submission.Pointer("jobType"), "no handler has declared this job type"))
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
	wanted.ID = job.ID(id)
	return wanted, s.checkNow(ctx, spec, wanted, mistakes)
}

// checkNow refuses what cannot be accepted as things are: the mistakes, a payload that does
// not match its schema, and a job that would expire before it is due. A replay is answered
// like the first submission, even if the job type has become stricter since.
func (s *submitRoutes) checkNow(ctx context.Context, spec job.TypeSpec, wanted job.Submission, mistakes []v1.Mistake) error {
	unfit, err := s.payloads.check(ctx, spec, wanted.Payload)
	if err != nil {
		return err
	}
	mistakes = slices.Concat(mistakes, checkTerms(wanted.Terms), checkExpiry(wanted, time.Now()), unfit)
	if len(mistakes) == 0 {
		return nil
	}
	if wanted.IdempotencyKey != "" {
		if replay, err := s.jobs.Known(ctx, wanted); err != nil || replay {
			return err
		}
	}
	return invalid(mistakes[:min(len(mistakes), submission.MaxMistakes)]...)
}

// checkTerms refuses terms of a key that is not there.
func checkTerms(terms job.Terms) (mistakes []v1.Mistake) {
	if terms.ConcurrencyKey != "" {
		return nil
	}
	if terms.ConcurrencyLimit != 0 {
		mistakes = append(mistakes, at(submission.Pointer("concurrencyLimit"), "needs concurrencyKey"))
	}
	if terms.OnConflict != "" {
		mistakes = append(mistakes, at(submission.Pointer("onConflict"), "needs concurrencyKey"))
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
		return []v1.Mistake{at(submission.Pointer("ttl"), "ends before runAt")}
	case wanted.ExpiresAt.IsZero():
		return nil
	case !wanted.ExpiresAt.After(now):
		return []v1.Mistake{at(submission.Pointer("expiresAt"), "must be in the future")}
	case !wanted.ExpiresAt.After(due):
		return []v1.Mistake{at(submission.Pointer("expiresAt"), "is before the end of delay")}
	}
	return nil
}

// mediaType returns the declared media type of a body, or empty if the body is
// compressed or not in UTF-8. It is strict: a page of another site can make a browser
// send requests without the header.
func mediaType(header http.Header) string {
	media, parameters := header.Get("Content-Type"), map[string]string(nil)
	if media != mediaJSON {
		var err error
		if media, parameters, err = mime.ParseMediaType(media); err != nil {
			return ""
		}
	}
	charset := strings.ToLower(parameters["charset"])
	encoding := strings.ToLower(header.Get("Content-Encoding"))
	if (charset != "" && charset != "utf-8") || (encoding != "" && encoding != "identity") {
		return ""
	}
	return media
}
