package api

import (
	"context"
	"errors"
	"regexp"

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
	add(r, "GET /dead-letter", "list-dead-letters", guard.Observe, d.list, mayBeStale)
	add(r, "GET /dead-letter/groups", "group-dead-letters", guard.Observe, d.groups, mayBeStale)
	add(r, "POST /dead-letter/retry", "retry-dead-letters", guard.Operate, d.retry)
}

// fingerprintParam is the fingerprint of an error; empty for none.
type fingerprintParam struct{ text string }

var fingerprintForm = regexp.MustCompile("^[0-9a-f]{16}$")

// UnmarshalText accepts what job.Fingerprint returns.
func (p *fingerprintParam) UnmarshalText(text []byte) error {
	if !fingerprintForm.Match(text) {
		return errors.New("must be 16 hexadecimal digits in lower case, as in the answer about groups")
	}
	p.text = string(text)
	return nil
}

// DeadLetterFilters choose dead letters. The router reads only exported parts of an input.
type DeadLetterFilters struct {
	JobType     string           `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant      string           `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	ErrorCode   string           `query:"errorCode" maxLength:"200" doc:"Only jobs whose last attempt ended with this error code."`
	Fingerprint fingerprintParam `query:"fingerprint" pattern:"^[0-9a-f]{16}$" doc:"Only jobs whose last error has this fingerprint: see the groups of dead letters. Together with jobType, this is fast among any number of dead letters."`
}

// filter is for at most limit of the jobs that the caller may see.
func (f *DeadLetterFilters) filter(ctx context.Context, limit int) (job.DeadLetterFilter, error) {
	tenant, err := tenantOf(ctx, f.Tenant)
	return job.DeadLetterFilter{Type: f.JobType, Tenant: tenant, Code: f.ErrorCode, Fingerprint: f.Fingerprint.text, Limit: limit}, err
}

type retryInput struct {
	call
	DeadLetterFilters
	Limit limitParam `query:"limit" doc:"How many to requeue at most, from 1 to 1000. A number outside this range is clamped."`
}

type deadLettersInput struct {
	call
	DeadLetterFilters
	Limit  limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type deadLettersOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.DeadLetterList
}

func (d *deadLetterRoutes) list(ctx context.Context, in *deadLettersInput) (*deadLettersOutput, error) {
	limit := in.Limit.value()
	// One more shows whether another page follows.
	filter, err := in.filter(ctx, limit+1)
	if err != nil {
		return nil, err
	}
	cursors := cursorsFor("dead letters", filter.Type, filter.Tenant, filter.Code, filter.Fingerprint)
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

type groupsInput struct {
	call
	JobType string `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant  string `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
}

// maxGroups bounds the groups of an answer. Errors that differ in more ways than this have
// nothing in common that a person could see.
const maxGroups = 1000

func (d *deadLetterRoutes) groups(ctx context.Context, in *groupsInput) (*body[v1.DeadLetterGroups], error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	groups, more, err := d.jobs.DeadLetterGroups(ctx, job.DeadLetterFilter{Type: in.JobType, Tenant: tenant, Limit: maxGroups})
	return bodyOf(groups, err, func(groups []job.DeadLetterGroup) v1.DeadLetterGroups {
		return v1.DeadLetterGroupsOf(groups, more)
	})
}

func (d *deadLetterRoutes) retry(ctx context.Context, in *retryInput) (*body[v1.Requeued], error) {
	if err := in.take(ctx, d.guard, guard.Requeue, 1); err != nil {
		return nil, err
	}
	filter, err := in.filter(ctx, in.Limit.value())
	if err != nil {
		return nil, err
	}
	count, err := d.jobs.Redrive(ctx, filter)
	return bodyOf(count, err, func(count int) v1.Requeued { return v1.Requeued{Count: count} })
}
