package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// jobRoutes show jobs, and change single jobs.
type jobRoutes struct {
	jobs     Jobs
	guard    *guard.Guard
	deadline deadline
}

func (j *jobRoutes) add(r *router) {
	add(r, "GET /jobs", "list-jobs", guard.Read, j.list, mayBeStale)
	add(r, "GET /jobs/{id}", "get-job", guard.Read, j.get, ownDeadline)
	add(r, "GET /jobs/{id}/tree", "get-job-tree", guard.Read, j.tree)
	add(r, "POST /jobs/{id}/cancel", "cancel-job", guard.Submit, j.change(j.jobs.Cancel))
	add(r, "POST /jobs/{id}/hold", "hold-job", guard.Submit, j.change(j.jobs.Hold))
	add(r, "POST /jobs/{id}/release", "release-job", guard.Submit, j.change(j.jobs.Release))
	add(r, "POST /jobs/{id}/requeue", "requeue-job", guard.Operate, j.requeue)
}

// listInput holds the filters of a list of jobs. They are named as the members of a
// job and of a submission.
type listInput struct {
	call
	Status        []string   `query:"status,explode" nullable:"false" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED" doc:"Only jobs with one of these statuses. Repeat the parameter, or separate the values by commas."`
	JobType       string     `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant        string     `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	Tag           string     `query:"tag" maxLength:"100" doc:"Only jobs with this tag."`
	ParentID      idParam    `query:"parentId" format:"uuid" doc:"Only jobs that this job has submitted."`
	CreatedFrom   timeParam  `query:"createdFrom" format:"date-time" doc:"Only jobs created at this time or later (RFC 3339)."`
	CreatedBefore timeParam  `query:"createdBefore" format:"date-time" doc:"Only jobs created before this time (RFC 3339)."`
	Limit         limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor        string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type listOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.JobList
}

func (j *jobRoutes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	states, err := statesOf(in.Status)
	if err != nil {
		return nil, err
	}
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	filter := job.Filter{
		States: states, Type: in.JobType, Tenant: tenant, Tag: in.Tag, Parent: in.ParentID.ID,
		CreatedFrom: in.CreatedFrom.Time, CreatedBefore: in.CreatedBefore.Time, Limit: in.Limit.value(),
	}
	chosen := []any{
		filter.States, filter.Type, filter.Tenant, filter.Tag, filter.CreatedFrom.UTC().String(), filter.CreatedBefore.UTC().String(),
	}
	if filter.Parent != (job.ID{}) {
		chosen = append(chosen, filter.Parent)
	}
	cursors := cursorsFor("jobs", chosen...)
	if filter.After, err = cursors.openID(in.Cursor); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	page, err := j.jobs.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := &listOutput{Body: v1.JobList{Jobs: make([]v1.Job, len(page.Jobs)), NextCursor: cursors.sealID(page.Next)}}
	for i, view := range page.Jobs {
		out.Body.Jobs[i] = v1.JobOf(view)
	}
	out.Link = in.nextPage(out.Body.NextCursor)
	return out, nil
}

// statesOf returns the states behind the requested statuses; none for no statuses.
func statesOf(lists []string) ([]job.State, error) {
	requested := map[job.Status]bool{}
	for _, list := range lists {
		for status := range strings.SplitSeq(list, ",") {
			requested[job.Status(status)] = true
		}
	}
	var states []job.State
	found := map[job.Status]bool{}
	for _, state := range job.States() {
		if status := state.Status(); requested[status] {
			states = append(states, state)
			found[status] = true
		}
	}
	if len(found) < len(requested) {
		return nil, invalid(at("query.status", "must be one of PENDING, RUNNING, COMPLETED, FAILED, CANCELED"))
	}
	return states, nil
}

// maxWait bounds a long poll: proxies cut connections that are silent for longer.
const maxWait = time.Minute

// waitParam is how long a client waits for a job to end.
type waitParam struct{ time.Duration }

// UnmarshalText accepts a Go duration up to maxWait.
func (p *waitParam) UnmarshalText(text []byte) error {
	var err error
	if p.Duration, err = time.ParseDuration(string(text)); err != nil || p.Duration < 0 || p.Duration > maxWait {
		return fmt.Errorf("must be a duration from 0s to %s, such as 30s", maxWait)
	}
	return nil
}

type getInput struct {
	call
	ID   job.ID    `path:"id" format:"uuid" doc:"The jobId that the submission returned."`
	Wait waitParam `query:"wait" example:"30s" doc:"Answer when the job has ended, or with its current state after this time: a Go duration from 0s to 60s."`
}

func (j *jobRoutes) get(ctx context.Context, in *getInput) (*body[v1.Job], error) {
	ctx, cancel := context.WithTimeout(ctx, j.deadline.usual+in.Wait.Duration)
	defer cancel()
	if err := mayTouch(ctx, j.jobs, in.ID); err != nil {
		return nil, err
	}
	view, err := j.await(ctx, in)
	return bodyOf(view, err, v1.JobOf)
}

// await returns the job when it has ended, the time is over, or the server stops,
// whichever comes first.
func (j *jobRoutes) await(ctx context.Context, in *getInput) (job.View, error) {
	if in.Wait.Duration == 0 {
		return j.jobs.Get(ctx, in.ID)
	}
	in.allowTime(in.Wait.Duration)
	waiting, cancel := j.deadline.orStop(ctx, in.Wait.Duration)
	defer cancel()
	view, err := j.jobs.Await(waiting, in.ID)
	if err != nil && errors.Is(err, waiting.Err()) && ctx.Err() == nil {
		return j.jobs.Get(ctx, in.ID)
	}
	return view, err
}

// change answers with the job after the change. The span of the request links to the
// job's trace.
func (j *jobRoutes) change(do func(context.Context, job.ID) (job.View, error)) func(context.Context, *jobInput) (*body[v1.Job], error) {
	return func(ctx context.Context, in *jobInput) (*body[v1.Job], error) {
		if err := mayTouch(ctx, j.jobs, in.ID); err != nil {
			return nil, err
		}
		view, err := do(ctx, in.ID)
		if err == nil {
			audit.Concerns(ctx, "tenant", view.Tenant)
			linkToJob(ctx, view.Trace)
		}
		return bodyOf(view, err, v1.JobOf)
	}
}

// requeue answers 400, not 409, for the wrong state, because clients rely on it; but 409 if the
// job's workflow is held or canceled.
func (j *jobRoutes) requeue(ctx context.Context, in *jobInput) (*body[v1.Job], error) {
	if err := in.take(ctx, j.guard, guard.Requeue, 1); err != nil {
		return nil, err
	}
	out, err := j.change(j.jobs.Requeue)(ctx, in)
	if errors.Is(err, job.ErrWrongState) && !errors.As(err, new(*job.WaitsError)) {
		return nil, problem(http.StatusBadRequest, "the job is not dead-lettered")
	}
	return out, err
}

// mayTouch returns job.ErrNotFound if the caller is bound to another tenant than the
// job's. A job never changes its tenant, so the result still holds when the caller
// acts on the job.
func mayTouch(ctx context.Context, jobs Jobs, id job.ID) error {
	bound := guard.Tenant(ctx)
	if bound == "" {
		return nil
	}
	view, err := jobs.Get(ctx, id)
	if err == nil && view.Tenant != bound {
		err = job.ErrNotFound
	}
	return err
}
