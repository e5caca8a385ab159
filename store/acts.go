package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// RecordAct writes down what somebody did. The database sets the time and the id.
func (s *Store) RecordAct(ctx context.Context, a job.Act) error {
	return s.db.Submissions.Do(ctx, "record_act", a.Actor, a.Action, a.Tenant, nullableID(a.JobID), postgres.Document(a.Filter), a.Count, a.Reason, a.Result)
}

// Acts returns what people did and the filter selects, newest first.
func (s *Store) Acts(ctx context.Context, filter job.ActFilter) ([]job.Act, error) {
	after := pgtype.Int8{Int64: filter.After.ID, Valid: !filter.After.At.IsZero()}
	return postgres.Read(ctx, s.db.StaleLists, "acts", pgx.RowToStructByName[job.Act],
		filter.Limit, filter.Actor, filter.Action, filter.Tenant, nullableID(filter.Job),
		postgres.Instant(filter.From), postgres.Instant(filter.Before), postgres.Instant(filter.After.At), after)
}

// ForgetActs deletes up to limit acts that were longer ago than keep.
func (s *Store) ForgetActs(ctx context.Context, keep time.Duration, limit int) (deleted int, err error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "forget_acts", postgres.Interval(keep), limit)
}

// nullableID is null for nil.
func nullableID(id *job.ID) pgtype.UUID {
	if id == nil {
		return pgtype.UUID{}
	}
	return postgres.UUID(*id)
}
