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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// scanAtMost bounds the rows that are looked at for one page: milliseconds
	// of work when they are in memory, of a million or more.
	scanAtMost = 10_000
	// clockSlack is how far the clock that an id was made by may be off the
	// database's.
	clockSlack = 5 * time.Minute
)

// List returns a page of the jobs that the filter chooses.
//
// Ids are in the order of creation (UUIDv7), so that the newest are found by
// going backward through an index on them. Times of creation bound the ids, but
// for clocks that differ by more than clockSlack.
func (s *Store) List(ctx context.Context, filter job.Filter) (job.Page, error) {
	sql, args := listing(filter)
	var found []listedRow
	err := s.lists.read(ctx, "list", func(conn *pgxpool.Conn) (err error) {
		found, err = read(ctx, conn, sql, pgx.RowToStructByName[listedRow], args...)
		return translate("list", err)
	})
	if err != nil {
		return job.Page{}, err
	}
	page := job.Page{Jobs: make([]job.View, 0, min(len(found), filter.Limit))}
	for _, row := range found {
		switch {
		case !row.Listed:
			page.Next = row.JobID // the scan ended here, and the page is not full
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
	// Listed is false for the row that the scan ended at, which may be
	// listed as well.
	Listed bool
}

// listing is the statement of a page and its arguments: the only statement
// that is put together, since every filter is a condition of its own.
//
// The scan goes backward through an index and looks at the rows that it finds.
// The page has one more row than the limit if there is one. If it has fewer,
// the last row is the one that the scan ended at because it had looked at
// enough; both parts are of one snapshot, so that nothing can slip through
// between two pages. "limit 1" has each row of the page looked up by its id,
// whatever the planner believes of the tables.
func listing(filter job.Filter) (sql string, args []any) {
	const row = `lateral (
    select j.job_id, j.job_type, j.tenant, j.state::text as state, j.created_at, j.updated_at,
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
order by job_id desc, listed desc`, row, scan.rows(), scan.get("s.job_id"), chosen, scan.order, limit, scanAtMost), args
}

// scan is where a list looks.
type scan struct {
	source string // a table that has one row for each job, and its id
	where  string
	order  string
}

const ledger = "jobs"

// get reads columns of s in the order of the scan's index.
func (s scan) get(columns string) string {
	return "select " + columns + " from " + s.source + " s where " + s.where + " order by " + s.order
}

// rows are what a page is chosen from, with what conditions ask for.
func (s scan) rows() string {
	if s.source == ledger {
		return fmt.Sprintf("%s limit %d", s.get("s.job_id, s.job_type, s.tenant, s.state, s.tags, s.created_at"), scanAtMost)
	}
	return fmt.Sprintf("select s.job_id, j.job_type, j.tenant, j.state, j.tags, j.created_at from (%s limit %d) s join %s j on j.job_id = s.job_id",
		s.get("s.job_id"), scanAtMost, ledger)
}

// scanOf says where to look, and in which order: the narrowest table or index
// that holds all jobs that the filter chooses and has them in the order of
// their ids. Comparing and ordering by whole keys leaves the planner no other
// index than that: one that it thinks cheaper may have nothing for millions of
// rows. What the scan decides is cleared in the filter.
func scanOf(filter *job.Filter) (scan, []any) {
	args := []any{uuid(oldest(*filter)), uuid(newest(*filter))}
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

// conditions are those on the rows that a scan finds. A job runs while it has a
// lease, whatever the ledger says of its state.
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

// oldest is the first id that the filter can choose.
func oldest(filter job.Filter) job.ID {
	if filter.CreatedFrom.IsZero() {
		return job.ID{}
	}
	return firstID(filter.CreatedFrom.Add(-clockSlack))
}

// newest is the first id that is too new for the filter.
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

// lastID is beyond every id.
var lastID = job.ID(bytes.Repeat([]byte{0xff}, 16))

// firstID is the lowest id made at that millisecond (RFC 9562, UUIDv7).
func firstID(at time.Time) job.ID {
	const most = 1<<48 - 1
	var id job.ID
	binary.BigEndian.PutUint64(id[:8], uint64(min(max(at.UnixMilli(), 0), most))<<16)
	return id
}
