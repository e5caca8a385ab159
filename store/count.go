package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// maxCounted limits how many dead letters a count examines, from the newest on, if it need
// not look at their jobs.
const maxCounted = 10 * maxScan

// Count counts the jobs that the filter selects, whatever its After and Limit: exactly up
// to job.MaxCount, among the newest maxScan of the table or index that List would read, or
// maxCounted dead letters. If there may be older ones, it says that there are more.
func (s *Store) Count(ctx context.Context, filter job.Filter) (job.Count, error) {
	filter.After = job.ID{}
	found, next, err := s.count(ctx, s.db.StaleLists, filter, job.MaxCount+1, examinedBy(filter))
	if err != nil {
		return job.Count{}, err
	}
	count := job.CountOf(found)
	count.More = count.More || next != job.ID{}
	return count, nil
}

// count counts up to limit jobs, or a few more, and returns the After with which it goes on; zero
// if it has seen all.
func (s *Store) count(ctx context.Context, from postgres.Lister, filter job.Filter, limit, most int) (jobs int, next job.ID, err error) {
	err = inStretches(filter.Within, most, func(examined int) (ended bool, err error) {
		found, err := s.countStretch(ctx, from, filter, limit, examined)
		jobs, next = jobs+found.Jobs, found.Next.Bytes
		filter.After = next
		return !found.Next.Valid || jobs >= limit, err
	})
	return jobs, next, err
}

// countRow is how many jobs a count has found, and where it ended; null if it has seen all.
type countRow struct {
	Jobs int
	Next pgtype.UUID
}

func (s *Store) countStretch(ctx context.Context, from postgres.Lister, filter job.Filter, limit, examined int) (found countRow, err error) {
	text, args := counting(filter, limit, examined)
	err = byIndex(ctx, from, "count", text, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[countRow])
		return err
	})
	return found, err
}

// examinedBy is how many rows a count examines.
func examinedBy(filter job.Filter) int {
	if scan, _ := scanOf(&filter, maxScan); scan.alone {
		return maxCounted
	}
	return maxScan
}

// counting returns the statement of a count and its arguments.
func counting(filter job.Filter, limit, examined int) (text string, args []any) {
	scan, args := scanOf(&filter, examined)
	chosen, args := scan.conditions(filter, args)
	return fmt.Sprintf(`
with %[1]sfound as materialized (
    select from (%[2]s) s
    where %[3]s
    limit %[4]d
)
select count(*)::integer as jobs, (%[5]s offset %[6]d - 1 limit 1) as next
from found`, scan.lists, scan.rows(examined), chosen, limit, scan.get("s.job_id"), examined), args
}
