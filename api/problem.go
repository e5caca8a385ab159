package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// retryAfterSeconds is sent with every 503: long enough for a failover to get
// under way, short enough for a restart not to be felt.
const retryAfterSeconds = "2"

// problem makes an RFC 9457 answer.
func problem(status int, detail string, errs ...*huma.ErrorDetail) *huma.ErrorModel {
	return &huma.ErrorModel{
		Status: status, Title: http.StatusText(status), Detail: detail, Errors: errs,
	}
}

// invalid is the answer to a request that was understood but cannot be
// accepted, with one error for each place that is wrong.
func invalid(errs ...*huma.ErrorDetail) *huma.ErrorModel {
	return problem(http.StatusUnprocessableEntity, "validation failed", errs...)
}

// at is one error and its place: "#/tags/3" is a JSON Pointer into the body,
// other places are named "header.X", "path.x" and "query.x".
func at(location, message string) *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: location, Message: message}
}

// fail translates an error of Jobs into an answer. What a client cannot act
// on is logged and not told.
func (s *service) fail(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, job.ErrNotFound):
		return problem(http.StatusNotFound, "no such job")
	case errors.Is(err, job.ErrWrongState):
		return problem(http.StatusConflict, "the job's state does not allow this")
	case errors.Is(err, job.ErrBadData):
		return problem(http.StatusUnprocessableEntity, "the database cannot store a value of this job")
	case errors.Is(err, job.ErrBusy):
		s.log.DebugContext(ctx, "request not served", "error", err)
		return huma.ErrorWithHeaders(
			problem(http.StatusServiceUnavailable, "too many reads at once, or this one took too long; try again later, or ask for less"),
			http.Header{"Retry-After": {retryAfterSeconds}})
	case errors.Is(err, job.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		detail := "the database is not available; try again"
		if errors.Is(err, job.ErrOutcomeUnknown) {
			detail = "the database has not confirmed the change, which may be stored or not; " +
				"repeat the request, with the same idempotency key if it submits a job"
		}
		level := slog.LevelWarn
		if errors.Is(err, context.Canceled) {
			level = slog.LevelDebug // The client left.
		}
		s.log.Log(ctx, level, "request not served", "error", err)
		return huma.ErrorWithHeaders(
			problem(http.StatusServiceUnavailable, detail),
			http.Header{"Retry-After": {retryAfterSeconds}})
	}
	s.log.ErrorContext(ctx, "request failed", "error", err)
	return problem(http.StatusInternalServerError, "internal error")
}

// discreet is the last step before an answer is written: errors neither echo
// what the client sent nor tell what went wrong inside.
func discreet(_ huma.Context, _ string, answer any) (any, error) {
	model, ok := answer.(*huma.ErrorModel)
	if !ok {
		return answer, nil
	}
	told := *model
	told.Errors = nil
	if model.Status >= http.StatusInternalServerError {
		return &told, nil
	}
	for _, e := range model.Errors {
		told.Errors = append(told.Errors, at(e.Location, e.Message))
	}
	return &told, nil
}

// writeProblem answers where huma does not.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(problem(status, detail))
}
