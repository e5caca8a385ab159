package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Short names, because many answers use them.
var (
	problem = v1.NewProblem
	invalid = v1.Invalid
)

// at returns one mistake. "#/tags/3" is a JSON Pointer into the body; other places are
// named "header.X", "path.x" and "query.x".
func at(location, message string) v1.Mistake { return v1.Mistake{Location: location, Message: message} }

// problemOf translates an error into an answer. If the client cannot act on the error,
// it is logged and not shown.
func problemOf(ctx context.Context, log *slog.Logger, err error) *v1.Problem {
	var answer *v1.Problem
	var waits *job.WaitsError
	switch {
	case errors.As(err, &answer):
		return answer
	case errors.Is(err, job.ErrNotFound):
		return problem(http.StatusNotFound, "no such job")
	case errors.Is(err, job.ErrNoPlugin):
		return problem(http.StatusNotFound, "this orchestrator has no plugin of that name")
	case errors.Is(err, job.ErrNoLimit):
		return problem(http.StatusNotFound, job.ErrNoLimit.Error())
	case errors.Is(err, job.ErrNoSchedule):
		return problem(http.StatusNotFound, job.ErrNoSchedule.Error())
	case errors.Is(err, job.ErrScheduleConfigured):
		return problem(http.StatusConflict, "a configuration sets this schedule: change it there, under schedules, and reload it with SIGHUP")
	case errors.Is(err, job.ErrNoPause):
		return problem(http.StatusNotFound, job.ErrNoPause.Error())
	case errors.Is(err, job.ErrNoCommand):
		return problem(http.StatusNotFound, job.ErrNoCommand.Error())
	case errors.Is(err, job.ErrNoWorker):
		return problem(http.StatusNotFound, job.ErrNoWorker.Error())
	case errors.Is(err, job.ErrNoType):
		return problem(http.StatusNotFound, job.ErrNoType.Error())
	case errors.Is(err, job.ErrConfigured):
		return problem(http.StatusConflict, "a configuration sets this limit: change it there, under limits, and reload it with SIGHUP")
	case errors.Is(err, job.ErrErased):
		return problem(http.StatusConflict, "the job was erased, so it cannot run again: submit a new one")
	case errors.Is(err, job.ErrNoErasure):
		return problem(http.StatusNotFound, job.ErrNoErasure.Error())
	case errors.Is(err, job.ErrNoOperation):
		return problem(http.StatusNotFound, job.ErrNoOperation.Error())
	case errors.Is(err, job.ErrNoWorkflow):
		return problem(http.StatusNotFound, job.ErrNoWorkflow.Error())
	case errors.As(err, &waits):
		return problem(http.StatusConflict, waits.Error())
	case errors.Is(err, job.ErrWrongState):
		return problem(http.StatusConflict, "the job's state does not allow this")
	case errors.Is(err, job.ErrKeyReused):
		return invalid(at(submission.Pointer("idempotencyKey"), "was used for a different job type or payload"))
	case errors.Is(err, job.ErrBadData):
		return problem(http.StatusUnprocessableEntity, "the database cannot store a value of this job")
	case errors.Is(err, job.ErrBusy):
		log.DebugContext(ctx, "request not served", "error", err)
		return v1.Unavailable("too many reads at once, or this one took too long; try again later, or ask for less")
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
		log.Log(ctx, level, "request not served", "error", err)
		return v1.Unavailable(detail)
	}
	log.ErrorContext(ctx, "request failed", "error", err)
	return problem(http.StatusInternalServerError, "internal error")
}

// discreet is the last step before an answer is written. It turns huma's own errors
// into problems, without the values that the client sent and without internal details.
func discreet(ctx huma.Context, _ string, answer any) (any, error) {
	model, ok := answer.(*huma.ErrorModel)
	if !ok {
		return answer, nil
	}
	shown := problem(model.Status, model.Detail)
	if model.Status < http.StatusInternalServerError {
		for _, e := range model.Errors {
			shown.Errors = append(shown.Errors, at(e.Location, e.Message))
		}
	}
	audit.Failed(ctx.Context(), shown)
	return shown, nil
}

// writeProblem answers requests that huma does not handle.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	write(w, problem(status, detail))
}

func write(w http.ResponseWriter, p *v1.Problem) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", v1.ProblemMedia)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
