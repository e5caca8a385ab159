package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

type deadLettersInput struct {
	query
	JobType wanted `query:"jobType" doc:"Of this type only."`
	Tenant  wanted `query:"tenant" doc:"Of this tenant only."`
	Limit   limit  `query:"limit" doc:"At most so many; taken as 1 or 1000 when it lies outside."`
	Cursor  string `query:"cursor" doc:"The nextCursor of the page before, which must have had the same filters."`
}

type redriveInput struct {
	query
	JobType wanted `query:"jobType" doc:"Of this type only."`
	Tenant  wanted `query:"tenant" doc:"Of this tenant only."`
	Limit   limit  `query:"limit" doc:"At most so many; taken as 1 or 1000 when it lies outside."`
}

type deadLettersOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\"; absent on the last one."`
	Body v1.DeadLetterList
}

type redriveOutput struct{ Body v1.Requeued }

func (s *service) addDeadLetters(routes huma.API) {
	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "list-dead-letters", Method: http.MethodGet, Path: "/dead-letter",
		Summary:     "Inspect dead-lettered jobs",
		Description: "Newest first. A dead-lettered job has failed for good, or as often as it was allowed to.",
		Tags:        []string{"Dead letters"},
		// The limit is a number by its schema and clamps itself; huma would
		// check the text it was made from.
		SkipValidateParams: true,
	}), s.deadLetters)

	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "retry-dead-letters", Method: http.MethodPost, Path: "/dead-letter/retry",
		Summary:            "Requeue dead-lettered jobs",
		Description:        "Gives them all their attempts again, the longest dead first.",
		Tags:               []string{"Dead letters"},
		SkipValidateParams: true,
	}), s.redrive)
}

func (s *service) deadLetters(ctx context.Context, in *deadLettersInput) (*deadLettersOutput, error) {
	tenant, err := restrict(ctx, in.Tenant.name)
	if err != nil {
		return nil, err
	}
	filter := job.DeadLetterFilter{Type: in.JobType.name, Tenant: tenant, Limit: in.Limit.value()}
	mark := fingerprint("dead letters", filter.Type, filter.Tenant)
	if filter.After, err = openDeadLetter(in.Cursor, mark); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	filter.Limit++ // One more shows whether another page follows.
	letters, err := s.jobs.DeadLetters(ctx, filter)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	out := &deadLettersOutput{}
	if page := filter.Limit - 1; len(letters) > page {
		letters = letters[:page]
		last := letters[page-1]
		out.Body.NextCursor = sealDeadLetter(mark, job.DeadLetterPosition{DeadAt: last.DeadAt, ID: last.ID})
		out.Link = in.next(out.Body.NextCursor)
	}
	out.Body.DeadLetters = make([]v1.DeadLetter, 0, len(letters))
	for _, d := range letters {
		out.Body.DeadLetters = append(out.Body.DeadLetters, v1.DeadLetterOf(d))
	}
	return out, nil
}

func (s *service) redrive(ctx context.Context, in *redriveInput) (*redriveOutput, error) {
	if err := s.take(ctx, in.exchange, guard.Requeue, 1); err != nil {
		return nil, err
	}
	tenant, err := restrict(ctx, in.Tenant.name)
	if err != nil {
		return nil, err
	}
	count, err := s.jobs.Redrive(ctx, job.DeadLetterFilter{Type: in.JobType.name, Tenant: tenant, Limit: in.Limit.value()})
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	out := &redriveOutput{}
	out.Body.Count = count
	return out, nil
}
