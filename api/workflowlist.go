package api

import (
	"context"
	"slices"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// searchedWorkflows bounds how many workflows one request looks at.
	searchedWorkflows = 10_000
	// workflowPortion is how many of them are read at once.
	workflowPortion = 1000
)

// WorkflowFilters choose workflows. The router reads only exported parts of an input.
type WorkflowFilters struct {
	Tenant     string   `query:"tenant" maxLength:"200" doc:"Only workflows of this tenant."`
	State      []string `query:"state,explode" nullable:"false" enum:"running,held,stuck,canceling,succeeded,canceled" doc:"Only workflows in one of these states. Repeat the parameter, or separate the values by commas."`
	Unfinished bool     `query:"unfinished" doc:"Only workflows that have not finished."`
}

type workflowsInput struct {
	call
	WorkflowFilters
	Limit  limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type workflowCountInput struct {
	call
	WorkflowFilters
}

type workflowsOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.WorkflowList
}

// workflowSearch looks through workflows, newest first.
type workflowSearch struct {
	job.WorkflowFilter
	// states are those to find; none for all.
	states []job.WorkflowState
}

// search is for the workflows that the caller may see.
func (f *WorkflowFilters) search(ctx context.Context) (workflowSearch, error) {
	tenant, err := tenantOf(ctx, f.Tenant)
	if err != nil {
		return workflowSearch{}, err
	}
	found := workflowSearch{WorkflowFilter: job.WorkflowFilter{Tenant: tenant, Unfinished: f.Unfinished, Limit: workflowPortion}}
	asked := map[job.WorkflowState]bool{}
	for _, list := range f.State {
		for name := range strings.SplitSeq(list, ",") {
			asked[job.WorkflowState(name)] = true
		}
	}
	for _, state := range job.WorkflowStates() {
		if asked[state] {
			found.states = append(found.states, state)
		}
	}
	if len(found.states) < len(asked) {
		return workflowSearch{}, invalid(at("query.state", "must be one of running, held, stuck, canceling, succeeded, canceled"))
	}
	if len(asked) > 0 && !asked[job.WorkflowSucceeded] && !asked[job.WorkflowCanceled] {
		found.Unfinished = true
	}
	return found, nil
}

// each shows what the search finds, until show returns false. cut is the last one that it has
// looked at if it gave up before; nil if not.
func (s workflowSearch) each(ctx context.Context, in Workflows, show func(job.Workflow) bool) (cut *job.Workflow, err error) {
	for looked := 0; ; {
		portion, err := in.Workflows(ctx, s.WorkflowFilter)
		if err != nil {
			return nil, err
		}
		for _, one := range portion {
			if (len(s.states) == 0 || slices.Contains(s.states, one.State())) && !show(one) {
				return nil, nil
			}
		}
		if len(portion) < s.Limit {
			return nil, nil
		}
		last := portion[len(portion)-1]
		if looked += len(portion); looked >= searchedWorkflows {
			return &last, nil
		}
		s.Before = &last.ID
	}
}

func (w *workflowRoutes) list(ctx context.Context, in *workflowsInput) (*workflowsOutput, error) {
	search, err := in.search(ctx)
	if err != nil {
		return nil, err
	}
	chosen := []any{search.Tenant, search.Unfinished}
	if len(search.states) > 0 {
		chosen = append(chosen, search.states)
	}
	cursors := cursorsFor("workflows", chosen...)
	before, err := cursors.openID(in.Cursor)
	if err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	if in.Cursor != "" {
		search.Before = &before
	}
	limit := in.Limit.value()
	if len(search.states) == 0 {
		search.Limit = limit + 1
	}
	out := &workflowsOutput{Body: v1.WorkflowList{Workflows: []v1.Workflow{}}}
	cut, err := search.each(ctx, w.workflows, func(one job.Workflow) bool {
		if len(out.Body.Workflows) < limit {
			out.Body.Workflows = append(out.Body.Workflows, v1.WorkflowOf(one))
			return true
		}
		// One more shows that another page follows.
		out.Body.NextCursor = cursors.sealID(out.Body.Workflows[limit-1].WorkflowID)
		return false
	})
	if err != nil {
		return nil, err
	}
	if cut != nil {
		out.Body.NextCursor = cursors.sealID(cut.ID)
		back := cut.CreatedAt.UTC()
		out.Body.SearchedBack = &back
	}
	out.Link = in.nextPage(out.Body.NextCursor)
	return out, nil
}

func (w *workflowRoutes) count(ctx context.Context, in *workflowCountInput) (*body[v1.WorkflowCount], error) {
	search, err := in.search(ctx)
	if err != nil {
		return nil, err
	}
	counted := v1.WorkflowCount{}
	cut, err := search.each(ctx, w.workflows, func(job.Workflow) bool {
		counted.Count++
		return true
	})
	counted.More = cut != nil
	return bodyOf(counted, err, func(c v1.WorkflowCount) v1.WorkflowCount { return c })
}
