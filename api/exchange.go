package api

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// exchange is embedded in the input of operations that need more of the
// request and its answer than huma makes of them. Huma finds its method, as
// part of the input's own, but would not find parameters in it.
type exchange struct {
	request *http.Request
	answer  http.ResponseWriter
}

// Resolve is called by huma before the operation.
func (e *exchange) Resolve(ctx huma.Context) []error {
	e.request, e.answer = humachi.Unwrap(ctx)
	return nil
}

// decoded undoes the encoding that the router leaves in the parts of a path in
// which it matters.
func (e *exchange) decoded(part string) string {
	if e.request.URL.RawPath != "" {
		if decoded, err := url.PathUnescape(part); err == nil {
			return decoded
		}
	}
	return part
}

// take counts n against a limit of the caller, and tells him how he stands.
// It returns the answer that refuses him when it was too much.
func (s *service) take(ctx context.Context, e exchange, limit guard.Limit, n int) error {
	allowance := s.guard.Take(ctx, limit, n)
	maps.Copy(e.answer.Header(), allowance.Header)
	if !allowance.Allowed {
		return problem(http.StatusTooManyRequests, allowance.Detail)
	}
	return nil
}

// mayTake is take for what is not known yet: it refuses a caller who may take
// nothing at all, before more is done for him.
func (s *service) mayTake(ctx context.Context, e exchange, limit guard.Limit) error {
	if allowance := s.guard.Look(ctx, limit); !allowance.Allowed {
		maps.Copy(e.answer.Header(), allowance.Header)
		return problem(http.StatusTooManyRequests, allowance.Detail)
	}
	return nil
}

// restrict returns the tenant that a list is for: the caller's own if he is
// bound to one, else the one asked for. Another's does not exist for him.
func restrict(ctx context.Context, asked string) (string, error) {
	bound := guard.Tenant(ctx)
	switch {
	case bound == "":
		return asked, nil
	case asked != "" && asked != bound:
		return "", problem(http.StatusNotFound, "no such tenant")
	}
	return bound, nil
}

// mayTouch returns the answer for a job that is not the caller's: there is
// none. A job never changes its tenant, so that what is found here still holds
// when it is acted upon.
func (s *service) mayTouch(ctx context.Context, id job.ID) error {
	bound := guard.Tenant(ctx)
	if bound == "" {
		return nil
	}
	view, err := s.jobs.Get(ctx, id)
	if err == nil && view.Tenant != bound {
		err = job.ErrNotFound
	}
	if err != nil {
		return s.fail(ctx, err)
	}
	return nil
}
