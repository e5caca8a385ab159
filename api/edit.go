package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// mediaPatch is JSON Merge Patch (RFC 7396).
const mediaPatch = "application/merge-patch+json"

// editRoutes change jobs that wait.
type editRoutes struct {
	jobs     Jobs
	memory   *intake.Memory
	maxBytes int64 // of a body
}

func (e *editRoutes) add(r *router) {
	add(r, "PATCH /jobs/{id}", "edit-job", guard.Submit, e.edit, takesBody)
	add(r, "PATCH /jobs", "edit-jobs", guard.Operate, e.editAll, takesBody)
}

func (e *editRoutes) edit(ctx context.Context, in *jobInput) (*body[v1.Job], error) {
	wanted, err := e.read(&in.call)
	if err != nil {
		return nil, err
	}
	if err := mayTouch(ctx, e.jobs, in.ID); err != nil {
		return nil, err
	}
	view, err := e.jobs.Edit(ctx, in.ID, wanted)
	if errors.Is(err, job.ErrWrongState) && !errors.As(err, new(*job.WaitsError)) {
		return nil, problem(http.StatusConflict, "the job is "+string(view.State.Status())+"; only a job that waits can be changed")
	}
	if err == nil {
		audit.Concerns(ctx, "tenant", view.Tenant)
		linkToJob(ctx, view.Trace)
	}
	return bodyOf(view, err, v1.JobOf)
}

// read reads what to change from the body.
func (e *editRoutes) read(in *call) (job.Edit, error) {
	if media := mediaType(in.request.Header); media != mediaJSON && media != mediaPatch {
		return job.Edit{}, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/merge-patch+json or application/json, and no Content-Encoding")
	}
	share := e.memory.Share()
	defer share.Release()
	body, err := intake.ReadBody(in.request, e.maxBytes, share)
	if err != nil {
		return job.Edit{}, err
	}
	wanted := submission.ParseEdit(body)
	switch {
	case wanted.Problem != nil:
		return job.Edit{}, wanted.Problem
	case len(wanted.Mistakes) > 0:
		return job.Edit{}, invalid(wanted.Mistakes...)
	}
	return wanted.Edit, nil
}

// editAllInput holds the filters of an edit. They are named as those of a list of jobs.
type editAllInput struct {
	call
	State         []string   `query:"state,explode" nullable:"false" enum:"created,queued,retry" doc:"Only jobs in one of these states: created is scheduled or held, retry waits for its next attempt. Repeat the parameter, or separate the values by commas."`
	JobType       string     `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant        string     `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	Tag           string     `query:"tag" maxLength:"100" doc:"Only jobs with this tag."`
	CreatedFrom   timeParam  `query:"createdFrom" format:"date-time" doc:"Only jobs created at this time or later (RFC 3339)."`
	CreatedBefore timeParam  `query:"createdBefore" format:"date-time" doc:"Only jobs created before this time (RFC 3339)."`
	DryRun        bool       `query:"dryRun" doc:"Count the jobs, and change none."`
	Limit         limitParam `query:"limit" doc:"How many to change at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor        string     `query:"cursor" doc:"The nextCursor of the previous answer, to go on with the same filters."`
}

// waiting are the states in which a job can be changed.
var waiting = []job.State{job.Created, job.Queued, job.Retry}

func (e *editRoutes) editAll(ctx context.Context, in *editAllInput) (*body[v1.Edited], error) {
	wanted, err := e.read(&in.call)
	if err != nil {
		return nil, err
	}
	states, err := waitingStatesOf(in.State)
	if err != nil {
		return nil, err
	}
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	if len(in.State) == 0 && in.JobType == "" && tenant == "" && in.Tag == "" && in.CreatedFrom.IsZero() && in.CreatedBefore.IsZero() {
		return nil, invalid(at("query", "needs a filter; for everything that waits, state=created,queued,retry"))
	}
	filter := job.Filter{
		States: states, Type: in.JobType, Tenant: tenant, Tag: in.Tag,
		CreatedFrom: in.CreatedFrom.Time, CreatedBefore: in.CreatedBefore.Time, Limit: in.Limit.value(),
	}
	cursors := cursorsFor("edits", filter.States, filter.Type, filter.Tenant, filter.Tag,
		filter.CreatedFrom.UTC().String(), filter.CreatedBefore.UTC().String())
	if filter.After, err = cursors.openID(in.Cursor); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	if in.DryRun {
		page, err := e.jobs.List(ctx, filter)
		return bodyOf(page, err, func(page job.Page) v1.Edited {
			return v1.Edited{Count: len(page.Jobs), NextCursor: cursors.sealID(page.Next)}
		})
	}
	page, err := e.jobs.EditAll(ctx, filter, wanted)
	return bodyOf(page, err, func(page job.EditPage) v1.Edited {
		return v1.Edited{Count: len(page.Edited), NextCursor: cursors.sealID(page.Next)}
	})
}

// waitingStatesOf returns the requested states; all in which a job waits for none.
func waitingStatesOf(lists []string) ([]job.State, error) {
	if len(lists) == 0 {
		return waiting, nil
	}
	requested := map[job.State]bool{}
	for _, list := range lists {
		for state := range strings.SplitSeq(list, ",") {
			if !slices.Contains(waiting, job.State(state)) {
				return nil, invalid(at("query.state", "must be one of created, queued, retry"))
			}
			requested[job.State(state)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(waiting), func(s job.State) bool { return !requested[s] }), nil
}
