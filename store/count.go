package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// maxCounted limits how many dead letters a count examines, from the newest on, if it need
// not look at their jobs.
const maxCounted = 10 * maxScan

// Count counts the jobs that the filter selects, whatever its After and Limit: exactly up
// to job.MaxCount, among the newest maxScan of the table or index that List would read, or
// maxCounted dead letters. If there may be older ones, it says that there are more.
func (s *Store) Count(ctx context.Context, filter job.Filter) (job.Count, error) {
	filter.After = job.ID{}
	found, err := s.count(ctx, filter, job.MaxCount+1)
	if err != nil {
		return job.Count{}, err
	}
	count := job.CountOf(found.Jobs)
	count.More = count.More || found.Next.Valid
	return count, nil
}

// CountAll counts the jobs that the filter selects, whatever its After and Limit, as many
// rows at a time as Count. When the time is over, it says that there are more.
func (s *Store) CountAll(ctx context.Context, filter job.Filter, within time.Duration) (count job.Count, err error) {
	filter.After = job.ID{}
	for began := time.Now(); ; {
		found, err := s.count(ctx, filter, maxCounted)
		if err != nil {
			return job.Count{}, err
		}
		count.Jobs += found.Jobs
		if count.More = found.Next.Valid; !count.More || time.Since(began) > within {
			return count, nil
		}
		filter.After = found.Next.Bytes
	}
}

// countRow is how many jobs a count has found, and where it ended; null if it has seen all.
type countRow struct {
	Jobs int
	Next pgtype.UUID
}

func (s *Store) count(ctx context.Context, filter job.Filter, limit int) (found countRow, err error) {
	text, args := counting(filter, limit)
	batch := &pgx.Batch{}
	batch.Queue(sql.Text("list_by_index"))
	batch.Queue(text, args...).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[countRow])
		return err
	})
	return found, s.db.Lists.Send(ctx, "count", batch)
}

// counting returns the statement of a count and its arguments.
func counting(filter job.Filter, limit int) (text string, args []any) {
	scan, args := scanOf(&filter)
	examined := maxScan
	if scan.alone {
		examined = maxCounted
	}
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
