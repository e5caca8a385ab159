package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Promote queues up to limit due jobs, scheduled or backing off. Those with gates are
// parked.
func (s *Store) Promote(ctx context.Context, limit int) (job.Promoted, error) {
	promoted, err := postgres.Change(ctx, s.db.Worker, "promote", pgx.RowToStructByName[job.Promoted], limit)
	if err != nil {
		return job.Promoted{}, err
	}
	return promoted[0], nil
}

// NextDue returns how long it is until the next scheduled job is due; ok is
// false when none is scheduled.
func (s *Store) NextDue(ctx context.Context) (in time.Duration, ok bool, err error) {
	next, err := postgres.Read(ctx, s.db.Worker, "next_due", pgx.RowTo[time.Duration])
	if len(next) == 0 {
		return 0, false, err
	}
	return next[0], true, nil
}

// Unserved lists the job types whose oldest queued job has been due for longer
// than the age, with the number of jobs that wait.
func (s *Store) Unserved(ctx context.Context, age time.Duration) ([]job.Unserved, error) {
	return postgres.Read(ctx, s.db.Worker, "unserved", pgx.RowToStructByName[job.Unserved], postgres.Interval(age))
}
