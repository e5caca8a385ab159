package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// listInput holds the filters of a list of jobs. Their names are the members
// of a job and of a submission.
type listInput struct {
	query
	Status        []string  `query:"status,explode" nullable:"false" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED" doc:"Any of these; repeated, or parted by commas."`
	JobType       wanted    `query:"jobType" doc:"Jobs of this type."`
	Tenant        wanted    `query:"tenant" doc:"Jobs of this tenant."`
	Tag           wantedTag `query:"tag" doc:"Jobs that have this tag."`
	CreatedFrom   moment    `query:"createdFrom" doc:"Created at this instant or later (RFC 3339)."`
	CreatedBefore moment    `query:"createdBefore" doc:"Created before this instant (RFC 3339)."`
	Limit         limit     `query:"limit" doc:"At most so many; taken as 1 or 1000 when it lies outside."`
	Cursor        string    `query:"cursor" doc:"The nextCursor of the page before, which must have had the same filters."`
}

type listOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\"; absent on the last one."`
	Body v1.JobList
}

func (s *service) addList(routes huma.API) {
	huma.Register(routes, scoped(guard.Read, huma.Operation{
		OperationID: "list-jobs", Method: http.MethodGet, Path: "/jobs",
		Summary:     "List jobs",
		Description: "Newest first. Filters are combined: a job must pass all of them.",
		Tags:        []string{"Jobs"},
		// As for dead letters.
		SkipValidateParams: true,
	}), s.list)
}

func (s *service) list(ctx context.Context, in *listInput) (*listOutput, error) {
	states, err := statesOf(in.Status)
	if err != nil {
		return nil, err
	}
	tenant, err := restrict(ctx, in.Tenant.name)
	if err != nil {
		return nil, err
	}
	filter := job.Filter{
		States: states, Type: in.JobType.name, Tenant: tenant, Tag: in.Tag.name,
		CreatedFrom: in.CreatedFrom.Time, CreatedBefore: in.CreatedBefore.Time, Limit: in.Limit.value(),
	}
	mark := fingerprint("jobs", filter.States, filter.Type, filter.Tenant, filter.Tag,
		filter.CreatedFrom.UTC().String(), filter.CreatedBefore.UTC().String())
	if filter.After, err = openID(in.Cursor, mark); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	page, err := s.jobs.List(ctx, filter)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	out := &listOutput{}
	out.Body.Jobs = make([]v1.Job, 0, len(page.Jobs))
	for _, view := range page.Jobs {
		out.Body.Jobs = append(out.Body.Jobs, v1.JobOf(view))
	}
	out.Body.NextCursor = sealID(mark, page.Next)
	out.Link = in.next(out.Body.NextCursor)
	return out, nil
}

// statesOf returns the states behind public statuses, each once; none when
// there are no statuses.
func statesOf(statuses []string) ([]job.State, error) {
	asked := map[job.Status]bool{}
	for _, list := range statuses {
		for status := range strings.SplitSeq(list, ",") {
			asked[job.Status(status)] = true
		}
	}
	var states []job.State
	for _, state := range job.States() {
		if asked[state.Status()] {
			states = append(states, state)
		}
	}
	for status := range asked {
		if !slices.ContainsFunc(states, func(s job.State) bool { return s.Status() == status }) {
			return nil, invalid(at("query.status", "must be of PENDING, RUNNING, COMPLETED, FAILED, CANCELED"))
		}
	}
	return states, nil
}
