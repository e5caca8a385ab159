package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Promote moves up to limit due jobs, scheduled or backing off, to the ready
// list and returns how many it moved.
func (s *Store) Promote(ctx context.Context, limit int) (int, error) {
	promoted, err := s.writeOnce(ctx, s.worker, promoteSQL, limit)
	return len(promoted), translate("promote", err)
}

// NextDue returns how long it is until the next scheduled job is due; ok is
// false when none is scheduled.
func (s *Store) NextDue(ctx context.Context) (in time.Duration, ok bool, err error) {
	err = s.worker.QueryRow(ctx, nextDueSQL).Scan(&in)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return in, err == nil, translate("next due", err)
}

// Unserved lists the job types whose oldest queued job has been due for longer
// than the age, with the number of jobs that wait.
func (s *Store) Unserved(ctx context.Context, age time.Duration) ([]job.Unserved, error) {
	rows, err := s.worker.Query(ctx, unservedSQL, interval(age))
	if err != nil {
		return nil, translate("unserved", err)
	}
	type row struct {
		JobType string
		Jobs    int
		Oldest  time.Duration
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, translate("unserved", err)
	}
	unserved := make([]job.Unserved, len(found))
	for i, row := range found {
		unserved[i] = job.Unserved{Type: row.JobType, Jobs: row.Jobs, Oldest: row.Oldest}
	}
	return unserved, nil
}
