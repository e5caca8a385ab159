package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// searchWithin bounds how long a list of jobs for operators, and its count, searches for jobs that
// match: nobody waits for what is rare among millions. A search of a thousand jobs is never cut.
const searchWithin = 100 * time.Millisecond

// findRoutes list, count and look up jobs by what only operators know of them.
type findRoutes struct {
	jobs      Jobs
	workflows Workflows
}

func (f *findRoutes) add(r *router) {
	add(r, "GET /debug/jobs", "find-jobs", guard.Observe, f.list, mayBeStale)
	add(r, "GET /debug/jobs/count", "count-jobs", guard.Observe, f.count, mayBeStale)
	add(r, "GET /debug/jobs/lookup", "look-up-jobs", guard.Observe, f.lookup)
}

// FindFilters choose jobs for operators. The router reads only exported parts of an input.
type FindFilters struct {
	State         []string         `query:"state,explode" nullable:"false" enum:"queued,scheduled,held,retrying,running,succeeded,dead,canceled" doc:"Only jobs in one of these states. Repeat the parameter, or separate the values by commas."`
	JobType       string           `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant        string           `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	Tag           string           `query:"tag" maxLength:"100" doc:"Only jobs with this tag."`
	Worker        string           `query:"worker" maxLength:"200" doc:"Only jobs that this worker runs, or was the last to run."`
	ErrorCode     string           `query:"errorCode" maxLength:"200" doc:"Only jobs whose last attempt ended with this error code."`
	Fingerprint   fingerprintParam `query:"fingerprint" pattern:"^[0-9a-f]{16}$" doc:"Only dead jobs whose error has this fingerprint: see the groups of dead letters."`
	Payload       string           `query:"payload" maxLength:"200" doc:"Only jobs whose payload contains this text, character by character. Needs the scope payloads."`
	ParentID      idParam          `query:"parentId" format:"uuid" doc:"Only jobs that this job has submitted."`
	CreatedFrom   timeParam        `query:"createdFrom" format:"date-time" doc:"Only jobs created at this time or later (RFC 3339)."`
	CreatedBefore timeParam        `query:"createdBefore" format:"date-time" doc:"Only jobs created before this time (RFC 3339)."`
}

// filter is for the jobs that the caller may see.
func (f *FindFilters) filter(ctx context.Context) (job.Filter, error) {
	if f.Payload != "" && !guard.SeesPayloads(ctx) {
		return job.Filter{}, problem(http.StatusForbidden, "to search payloads, these credentials need the scope payloads")
	}
	tenant, err := tenantOf(ctx, f.Tenant)
	if err != nil {
		return job.Filter{}, err
	}
	filter := job.Filter{
		Type: f.JobType, Tenant: tenant, Tag: f.Tag, Worker: f.Worker, Code: f.ErrorCode, Fingerprint: f.Fingerprint.text, Payload: f.Payload, Parent: f.ParentID.ID,
		CreatedFrom: f.CreatedFrom.Time, CreatedBefore: f.CreatedBefore.Time,
	}
	return filter, f.chooseStates(&filter)
}

// exactStates are the states as operators know them.
var exactStates = map[string]job.State{
	"queued": job.Queued, "scheduled": job.Created, "held": job.Created, "retrying": job.Retry,
	"running": job.Running, "succeeded": job.Succeeded, "dead": job.Dead, "canceled": job.Canceled,
}

func (f *FindFilters) chooseStates(filter *job.Filter) error {
	asked, states := map[string]bool{}, map[job.State]bool{}
	for _, list := range f.State {
		for name := range strings.SplitSeq(list, ",") {
			state, known := exactStates[name]
			if !known {
				return invalid(at("query.state", "must be one of queued, scheduled, held, retrying, running, succeeded, dead, canceled"))
			}
			asked[name], states[state] = true, true
		}
	}
	for _, state := range job.States() {
		if states[state] {
			filter.States = append(filter.States, state)
		}
	}
	filter.WithoutHeld = asked["scheduled"] && !asked["held"]
	filter.WithoutScheduled = asked["held"] && !asked["scheduled"]
	return nil
}

type findInput struct {
	call
	FindFilters
	Limit  limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type findOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.FoundJobs
}

func (f *findRoutes) list(ctx context.Context, in *findInput) (*findOutput, error) {
	filter, err := in.filter(ctx)
	if err != nil {
		return nil, err
	}
	cursors := cursorsFor("found jobs"+filter.Fingerprint, filter.States, filter.WithoutHeld, filter.WithoutScheduled, filter.Type, filter.Tenant, filter.Tag,
		filter.Worker, filter.Code, filter.Payload, filter.Parent, filter.CreatedFrom.UTC().String(), filter.CreatedBefore.UTC().String())
	if filter.After, err = cursors.openID(in.Cursor); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	filter.Limit, filter.Within = in.Limit.value(), searchWithin
	page, err := f.jobs.Find(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := &findOutput{Body: v1.FoundJobsOf(page, cursors.sealID(page.Next))}
	switch {
	case in.Cursor != "":
		out.Body.PageCursor = in.Cursor
	case len(page.Jobs) > 0:
		out.Body.PageCursor = cursors.sealID(above(page.Jobs[0].ID))
	}
	out.Link = in.nextPage(out.Body.NextCursor)
	return out, nil
}

// above is the next higher id.
func above(id job.ID) job.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

type countInput struct {
	call
	FindFilters
}

func (f *findRoutes) count(ctx context.Context, in *countInput) (*body[v1.JobCount], error) {
	filter, err := in.filter(ctx)
	if err != nil {
		return nil, err
	}
	filter.Within = searchWithin
	count, err := f.jobs.Count(ctx, filter)
	return bodyOf(count, err, func(c job.Count) v1.JobCount { return v1.JobCount{Count: c.Jobs, More: c.More} })
}
