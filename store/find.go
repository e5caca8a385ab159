package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// foundColumns are what a list for operators has besides the view of a job. lookup.sql has
// the same; a test compares them.
const foundColumns = `,
        j.tags, j.priority, nullif(j.run_at, 'infinity') as due_at, j.attempt as charged, j.max_attempts,
        coalesce(j.worker_id, '') as worker,
        coalesce(substring(j.last_error from '^[^\r\n]{0,200}'), '') as last_error,
        coalesce(case when j.state <> 'succeeded' then (
            select a.error_code
            from unsuccessful_attempts a
            where a.job_id = j.job_id
            order by a.job_id desc, a.fence desc
            limit 1
        ) end, '') as code`

// foundRow is a job.Found with what cannot be scanned into it.
type foundRow struct {
	job.Found
	TraceParent string
	TraceState  string
	DueAt       *time.Time
}

func (r foundRow) found() job.Found {
	r.Trace = traceContext(r.TraceParent, r.TraceState)
	if r.DueAt != nil {
		r.RunAt = *r.DueAt
	}
	return r.Found
}

func foundOf(rows []foundRow) []job.Found {
	jobs := make([]job.Found, len(rows))
	for i, row := range rows {
		jobs[i] = row.found()
	}
	return jobs
}

// Lookup returns the jobs that the lookup names, newest first.
func (s *Store) Lookup(ctx context.Context, lookup job.Lookup) ([]job.Found, error) {
	rows, err := postgres.Read(ctx, s.db.Lookups, "lookup", pgx.RowToStructByNameLax[foundRow],
		optionalID(lookup.ID), postgres.Text(lookup.Key), postgres.Text(lookup.Tenant),
		job.MaxLookupTenants, lookup.Limit)
	return foundOf(rows), err
}
