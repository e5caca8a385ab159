package api

import (
	"context"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// deadLetterRoutes list dead letters and requeue many at once.
type deadLetterRoutes struct {
	jobs  Jobs
	guard *guard.Guard
}

func (d *deadLetterRoutes) add(r *router) {
	add(r, "GET /dead-letter", "list-dead-letters", guard.Operate, d.list)
	add(r, "POST /dead-letter/retry", "retry-dead-letters", guard.Operate, d.retry)
}

type retryInput struct {
	call
	JobType string     `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant  string     `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	Limit   limitParam `query:"limit" doc:"How many to requeue at most, from 1 to 1000. A number outside this range is clamped."`
}

type deadLettersInput struct {
	call
	JobType string     `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant  string     `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	Limit   limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor  string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type deadLettersOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.DeadLetterList
}

func (d *deadLetterRoutes) list(ctx context.Context, in *deadLettersInput) (*deadLettersOutput, error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	limit := in.Limit.value()
	// One more shows whether another page follows.
	filter := job.DeadLetterFilter{Type: in.JobType, Tenant: tenant, Limit: limit + 1}
	cursors := cursorsFor("dead letters", filter.Type, filter.Tenant)
	if filter.After, err = cursors.openDeadLetter(in.Cursor); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	found, err := d.jobs.DeadLetters(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := &deadLettersOutput{Body: v1.DeadLetterList{DeadLetters: []v1.DeadLetter{}}}
	if len(found) > limit {
		found = found[:limit]
		out.Body.NextCursor = cursors.sealDeadLetter(found[limit-1])
		out.Link = in.nextPage(out.Body.NextCursor)
	}
	for _, dead := range found {
		out.Body.DeadLetters = append(out.Body.DeadLetters, v1.DeadLetterOf(dead))
	}
	return out, nil
}

func (d *deadLetterRoutes) retry(ctx context.Context, in *retryInput) (*body[v1.Requeued], error) {
	if err := in.take(ctx, d.guard, guard.Requeue, 1); err != nil {
		return nil, err
	}
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	count, err := d.jobs.Redrive(ctx, job.DeadLetterFilter{Type: in.JobType, Tenant: tenant, Limit: in.Limit.value()})
	return bodyOf(count, err, func(count int) v1.Requeued { return v1.Requeued{Count: count} })
}
