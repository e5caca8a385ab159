package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// maxScan limits how many rows one page examines. In memory, that takes milliseconds,
	// even for a million rows.
	maxScan = 10_000
	// clockSlack is how far the clock that created an id may differ from the database's.
	clockSlack = 5 * time.Minute
)

// List returns a page of the jobs that the filter selects.
//
// Ids are in the order of creation (UUIDv7), so scanning an index on them backward
// finds the newest first. The times of creation limit the ids, unless clocks differ
// by more than clockSlack.
func (s *Store) List(ctx context.Context, filter job.Filter) (job.Page, error) {
	text, args := listing(filter)
	var found []listedRow
	batch := &pgx.Batch{}
	batch.Queue(sql.Text("list_by_index"))
	batch.Queue(text, args...).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByNameLax[listedRow])
		return err
	})
	if err := s.db.Lists.Send(ctx, "list", batch); err != nil {
		return job.Page{}, err
	}
	page := job.Page{Jobs: make([]job.View, 0, min(len(found), filter.Limit))}
	for _, row := range found {
		switch {
		case !row.Listed:
			page.Next = row.ID // the scan ended here, before the page was full
		case len(page.Jobs) == filter.Limit:
			page.Next = page.Jobs[filter.Limit-1].ID
		default:
			page.Jobs = append(page.Jobs, row.view())
		}
	}
	return page, nil
}

type listedRow struct {
	viewRow
	// Listed is false for the row at which the scan ended. The same job may also have a
	// row in which it is true.
	Listed bool
}

// listing returns the statement of a page and its arguments. It is the only
// statement composed at run time, because each filter is a condition of its own.
//
// The scan goes backward through an index and examines the rows that it finds. The
// page has one row more than the limit, if there is one. If it has fewer, the last
// row is where the scan ended because it had examined maxScan rows. Both parts see
// the same snapshot, so no job can fall between two pages. "limit 1" makes the
// planner look up each row of the page by its id, whatever its statistics say.
func listing(filter job.Filter) (text string, args []any) {
	const row = `lateral (
    select j.job_id as id, j.job_type as type, j.tenant, j.state::text as state, j.created_at, j.updated_at,
        j.started_at, j.finished_at, j.progress::text as progress, j.result::text as result,
        j.trace_parent, j.trace_state
    from current_jobs j
    where j.job_id = s.job_id
    limit 1
) j`
	scan, args := scanOf(&filter)
	args = append(args, filter.Limit+1)
	limit := len(args)
	chosen, args := conditions(filter, args)
	return fmt.Sprintf(`
with page as materialized (
    select s.job_id
    from (%[2]s) s
    where %[4]s
    order by %[5]s
    limit $%[6]d
)
select j.*, true as listed
from page s, %[1]s
union all
select j.*, false
from (%[3]s offset %[7]d - 1 limit 1) s, %[1]s
where (select count(*) from page) < $%[6]d
order by id desc, listed desc`, row, scan.rows(), scan.get("s.job_id"), chosen, scan.order, limit, maxScan), args
}

// scan says which table or index a list reads, and how.
type scan struct {
	source string // a table with one row for each job, and its id
	where  string
	order  string
}

const ledger = "jobs"

// get reads columns of s in the order of the scan's index.
func (s scan) get(columns string) string {
	return "select " + columns + " from " + s.source + " s where " + s.where + " order by " + s.order
}

// rows is the subquery from which a page is chosen, with the columns that conditions
// use.
func (s scan) rows() string {
	if s.source == ledger {
		return fmt.Sprintf("%s limit %d", s.get("s.job_id, s.job_type, s.tenant, s.state, s.tags, s.created_at"), maxScan)
	}
	return fmt.Sprintf("select s.job_id, j.job_type, j.tenant, j.state, j.tags, j.created_at from (%s limit %d) s join %s j on j.job_id = s.job_id",
		s.get("s.job_id"), maxScan, ledger)
}

// scanOf chooses the narrowest table or index that contains all jobs that the
// filter selects, in the order of their ids. The scan compares and orders by whole
// keys, so that the planner can use no other index: one that it considers cheaper
// may match nothing for millions of rows. scanOf clears the fields of the filter
// that the scan covers.
func scanOf(filter *job.Filter) (scan, []any) {
	args := []any{postgres.UUID(oldest(*filter)), postgres.UUID(newest(*filter))}
	byID := scan{source: ledger, where: "s.job_id >= $1 and s.job_id < $2", order: "s.job_id desc"}
	switch only := filter.States; {
	case slices.Equal(only, []job.State{job.Running}):
		byID.source, filter.States = "leases", nil
	case slices.Equal(only, []job.State{job.Dead}):
		byID.source, filter.States = "dead_letters", nil
	case filter.Tenant != "" && filter.Tenant != job.DefaultTenant:
		args = append(args, filter.Tenant)
		filter.Tenant = ""
		return scan{
			source: ledger,
			where:  "s.tenant <> 'default' and (s.tenant, s.job_id) >= ($3, $1) and (s.tenant, s.job_id) < ($3, $2)",
			order:  "s.tenant desc, s.job_id desc",
		}, args
	case filter.Type != "":
		args = append(args, filter.Type)
		filter.Type = ""
		return scan{
			source: ledger,
			where:  "(s.job_type, s.job_id) >= ($3, $1) and (s.job_type, s.job_id) < ($3, $2)",
			order:  "s.job_type desc, s.job_id desc",
		}, args
	}
	return byID, args
}

// conditions are those on the rows that a scan finds. A job is running while it has
// a lease, whatever its state in the ledger.
func conditions(filter job.Filter, args []any) (string, []any) {
	all := []string{"true"}
	where := func(given bool, condition string, value any) {
		if given {
			args = append(args, value)
			all = append(all, fmt.Sprintf(condition, len(args)))
		}
	}
	states := make([]string, len(filter.States))
	for i, state := range filter.States {
		states[i] = string(state)
	}
	where(filter.Type != "", "s.job_type = $%d", filter.Type)
	where(filter.Tenant != "", "s.tenant = $%d", filter.Tenant)
	where(filter.Tag != "", "$%d = any(s.tags)", filter.Tag)
	where(!filter.CreatedFrom.IsZero(), "s.created_at >= $%d", filter.CreatedFrom)
	where(!filter.CreatedBefore.IsZero(), "s.created_at < $%d", filter.CreatedBefore)
	where(len(states) > 0, "coalesce((select 'running'::job_state from leases l where l.job_id = s.job_id), s.state)"+
		" = any($%d::text[]::job_state[])", states)
	return strings.Join(all, " and "), args
}

// oldest is the lowest id that the filter can select.
func oldest(filter job.Filter) job.ID {
	if filter.CreatedFrom.IsZero() {
		return job.ID{}
	}
	return firstID(filter.CreatedFrom.Add(-clockSlack))
}

// newest is the lowest id that is too new for the filter.
func newest(filter job.Filter) job.ID {
	before := filter.After
	if before == (job.ID{}) {
		before = lastID
	}
	if filter.CreatedBefore.IsZero() {
		return before
	}
	if bound := firstID(filter.CreatedBefore.Add(clockSlack)); bytes.Compare(bound[:], before[:]) < 0 {
		return bound
	}
	return before
}

// lastID is higher than every id.
var lastID = job.ID(bytes.Repeat([]byte{0xff}, 16))

// firstID is the lowest id created in that millisecond (RFC 9562, UUIDv7).
func firstID(at time.Time) job.ID {
	const most = 1<<48 - 1
	var id job.ID
	binary.BigEndian.PutUint64(id[:8], uint64(min(max(at.UnixMilli(), 0), most))<<16)
	return id
}
