package api

import (
	"context"
	"errors"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLookedUp bounds how many jobs one idempotency key finds.
const maxLookedUp = 100

type lookupInput struct {
	call
	Q      string `query:"q" required:"true" maxLength:"255" doc:"The id of a job or a workflow, in any case, or an idempotency key."`
	Tenant string `query:"tenant" maxLength:"200" doc:"Only what this tenant has. Without it, a key is looked up for the first 10,000 tenants by name."`
}

func (f *findRoutes) lookup(ctx context.Context, in *lookupInput) (*body[v1.Lookup], error) {
	if in.Q == "" {
		return nil, invalid(at("query.q", "is required: an id or an idempotency key"))
	}
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	asked := job.Lookup{Key: in.Q, Tenant: tenant, Limit: maxLookedUp + 1}
	id, err := job.ParseID(strings.TrimSpace(in.Q))
	if err == nil {
		asked.ID = id
	}
	found, err := f.jobs.Lookup(ctx, asked)
	if err != nil {
		return nil, err
	}
	answer := v1.Lookup{Jobs: []v1.FoundJob{}, More: len(found) > maxLookedUp}
	for _, one := range found[:min(len(found), maxLookedUp)] {
		answer.Jobs = append(answer.Jobs, v1.FoundJobOf(one))
	}
	answer.Workflow, err = f.workflow(ctx, asked.ID, tenant)
	return &body[v1.Lookup]{answer}, err
}

// workflow returns nil if there is no such workflow, or not for this tenant.
func (f *findRoutes) workflow(ctx context.Context, id job.ID, tenant string) (*v1.Workflow, error) {
	if id == (job.ID{}) {
		return nil, nil
	}
	found, err := f.workflows.Workflow(ctx, id)
	switch {
	case errors.Is(err, job.ErrNoWorkflow), err == nil && tenant != "" && found.Tenant != tenant:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return new(v1.WorkflowOf(found)), nil
}
