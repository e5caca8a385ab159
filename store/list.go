package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
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
	return s.list(ctx, s.db.StaleLists, filter)
}

// list is List, which for what decides about jobs must be current.
func (s *Store) list(ctx context.Context, from postgres.Lister, filter job.Filter) (job.Page, error) {
	rows, next, err := s.page(ctx, from, filter, "")
	page := job.Page{Jobs: make([]job.View, len(rows)), Next: next}
	for i, row := range rows {
		page.Jobs[i] = row.found().View
	}
	return page, err
}

// Find returns the page that List would return, with what operators see of each job.
func (s *Store) Find(ctx context.Context, filter job.Filter) (job.FoundPage, error) {
	return s.find(ctx, s.db.StaleLists, filter)
}

func (s *Store) find(ctx context.Context, from postgres.Lister, filter job.Filter) (job.FoundPage, error) {
	rows, next, err := s.page(ctx, from, filter, foundColumns)
	return job.FoundPage{Jobs: foundOf(rows), Next: next}, err
}

// page returns the rows of a page, with more columns than those of a view, and where the
// next page begins.
func (s *Store) page(ctx context.Context, from postgres.Lister, filter job.Filter, more string) (rows []foundRow, next job.ID, err error) {
	limit := filter.Limit
	err = inStretches(filter.Within, maxScan, func(examined int) (ended bool, err error) {
		filter.Limit = limit - len(rows)
		found, after, err := s.stretch(ctx, from, filter, more, examined)
		rows, next = append(rows, found...), after
		filter.After = next
		return next == job.ID{} || len(rows) == limit, err
	})
	return rows, next, err
}

// byIndex runs a statement that reads one index in its order, whatever the planner would prefer.
func byIndex(ctx context.Context, from postgres.Lister, operation, text string, args []any, collect func(pgx.Rows) error) error {
	return from.Send(ctx, operation, func() *pgx.Batch {
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("list_by_index"))
		batch.Queue(text, args...).Query(collect)
		return batch
	})
}

// stretch is page for so many rows of a table or index.
func (s *Store) stretch(ctx context.Context, from postgres.Lister, filter job.Filter, more string, examined int) (rows []foundRow, next job.ID, err error) {
	text, args := listing(filter, more, examined)
	var found []listedRow
	err = byIndex(ctx, from, "list", text, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByNameLax[listedRow])
		return err
	})
	if err != nil {
		return nil, job.ID{}, err
	}
	for _, row := range found {
		switch {
		case !row.Listed:
			next = row.ID // the scan ended here, before the page was full
		case len(rows) == filter.Limit:
			next = rows[filter.Limit-1].ID
		default:
			rows = append(rows, row.foundRow)
		}
	}
	return rows, next, nil
}

type listedRow struct {
	foundRow
	// Listed is false for the row at which the scan ended. The same job may also have a
	// row in which it is true.
	Listed bool
}

// listing returns the statement of a page and its arguments, with more columns of each job j
// than those of a view.
//
// The page has one row more than the limit, if there is one. If it has fewer, the last
// row is where the scan ended because it had examined so many rows. Both parts see
// the same snapshot, so no job can fall between two pages. "limit 1" makes the
// planner look up each row of the page by its id, whatever its statistics say.
func listing(filter job.Filter, more string, examined int) (text string, args []any) {
	row := `lateral (
    select j.job_id as id, j.job_type as type, j.tenant, j.state::text as state, j.created_at, j.updated_at,
        j.started_at, j.finished_at, j.erased_at, j.progress::text as progress, j.result::text as result,
        j.trace_parent, j.trace_state` + more + `
    from current_jobs j
    where j.job_id = s.job_id
    limit 1
) j`
	page, last, args := matching(filter, filter.Limit+1, examined)
	return fmt.Sprintf(`
%[2]s
select j.*, true as listed
from page s, %[1]s
union all
select j.*, false
from (%[3]s) s, %[1]s
order by id desc, listed desc`, row, page, last), args
}

// matching returns the tables of a statement that finds the newest jobs that the filter
// selects: the last of them, page, has the ids of up to limit jobs. It examines so many rows,
// backward through an index. last is a query for the id at which the scan ended, if it did
// before the page was full. Lists, dry runs and operations all find their jobs here. It is the
// only part of a statement composed at run time, because each filter is a condition of its own.
func matching(filter job.Filter, limit, examined int) (page, last string, args []any) {
	scan, args := scanOf(&filter, examined)
	args = append(args, limit)
	limited := len(args)
	chosen, args := scan.conditions(filter, args)
	page = fmt.Sprintf(`with %[1]spage as materialized (
    select s.job_id
    from (%[2]s) s
    where %[3]s
    order by %[4]s
    limit $%[5]d
)`, scan.lists, scan.rows(examined), chosen, scan.order, limited)
	last = fmt.Sprintf("select s.job_id from (%s offset %d - 1 limit 1) s where (select count(*) from page) < $%d",
		scan.get("s.job_id"), examined, limited)
	return page, last, args
}

// scan says which table or index a list reads, and how.
type scan struct {
	source string // a table with one row for each job, and its id
	where  string
	order  string
	// lists are the tables of the statement that the source refers to, if any.
	lists string
	// alone is set if the source is dead_letters, and has all that the filter asks for.
	alone bool
}

const ledger = "jobs"

// get reads columns of s in the order of the scan's index.
func (s scan) get(columns string) string {
	return "select " + columns + " from " + s.source + " s where " + s.where + " order by " + s.order
}

// rows is the subquery from which a page is chosen, with the columns that conditions
// use. Reading each job from the ledger as well takes ten times as long, or a hundred times
// if it is not in memory.
func (s scan) rows(limit int) string {
	if s.alone {
		return fmt.Sprintf("%s limit %d", s.get("s.job_id, s.job_type, s.tenant, s.error_code, s.fingerprint, s.dead_at as finished_at, s.dead_at as created_at"), limit)
	}
	const columns = "job_type, tenant, parent_id, state, tags, created_at, finished_at, run_at, worker_id, fence, payload"
	of := func(alias string) string { return alias + "." + strings.ReplaceAll(columns, ", ", ", "+alias+".") }
	if s.source == ledger {
		return fmt.Sprintf("%s limit %d", s.get("s.job_id, "+of("s")), limit)
	}
	return fmt.Sprintf("select s.job_id, %s from (%s limit %d) s join %s j on j.job_id = s.job_id",
		of("j"), s.get("s.job_id"), limit, ledger)
}

// scanOf chooses the narrowest table or index that contains all jobs that the
// filter selects, in the order of their ids. The scan compares and orders by whole
// keys, so that the planner can use no other index: one that it considers cheaper
// may match nothing for millions of rows. scanOf clears the fields of the filter
// that the scan covers. It is for so many rows.
func scanOf(filter *job.Filter, examined int) (scan, []any) {
	if !allWait(filter.States) {
		return narrowest(filter)
	}
	asked := *filter
	otherwise, args := narrowest(&asked)
	return listsOr(filter, otherwise, args, examined)
}

// allWait reports whether the states are those of jobs that wait.
func allWait(states []job.State) bool {
	for _, state := range states {
		if state != job.Created && state != job.Queued && state != job.Retry {
			return false
		}
	}
	return len(states) > 0
}

// listsOr reads the lists of jobs that wait, if they are short: those jobs may be anywhere
// among millions that have ended. If the lists are long, it does the other scan.
func listsOr(filter *job.Filter, otherwise scan, args []any, examined int) (scan, []any) {
	var lists []string
	if slices.Contains(filter.States, job.Queued) {
		ofType := ""
		if filter.Type != "" {
			args = append(args, filter.Type)
			ofType = fmt.Sprintf(" where job_type = $%d", len(args))
		}
		lists = append(lists, "select job_id from ready"+ofType, "select job_id from parked")
	}
	if slices.ContainsFunc(filter.States, func(s job.State) bool { return s != job.Queued }) {
		lists = append(lists, "select job_id from timers")
	}
	for i := range lists {
		lists[i] = fmt.Sprintf("(%s limit %d)", lists[i], maxScan)
	}
	return scan{source: "candidates", where: "true", order: "s.job_id desc", lists: fmt.Sprintf(`listed as materialized (
    %[1]s
), length as materialized (
    select count(*) < %[2]d as short from listed
), candidates as materialized (
    select job_id
    from listed
    where (select short from length) and job_id >= $1 and job_id < $2
    union all
    select job_id
    from (%[3]s limit %[4]d) s
    where not (select short from length)
), `, strings.Join(lists, "\n    union all\n    "), maxScan, otherwise.get("s.job_id"), examined)}, args
}

// narrowest chooses one table or index.
func narrowest(filter *job.Filter) (scan, []any) {
	args := []any{postgres.UUID(oldest(*filter)), postgres.UUID(newest(*filter))}
	byID := scan{source: ledger, where: "s.job_id >= $1 and s.job_id < $2", order: "s.job_id desc"}
	switch only := filter.States; {
	case filter.Parent != job.ID{}:
		args = append(args, postgres.UUID(filter.Parent))
		filter.Parent = job.ID{}
		return scan{
			source: ledger,
			where:  "s.parent_id is not null and (s.parent_id, s.job_id) >= ($3, $1) and (s.parent_id, s.job_id) < ($3, $2)",
			order:  "s.parent_id desc, s.job_id desc",
		}, args
	case slices.Equal(only, []job.State{job.Running}):
		byID.source, filter.States = "leases", nil
	case slices.Equal(only, []job.State{job.Dead}):
		byID.source, filter.States = "dead_letters", nil
		byID.alone = inDeadLetters(*filter)
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
	if allWait(filter.States) && !slices.Contains(filter.States, job.Queued) {
		byID.source = "timers"
	}
	return byID, args
}

// inDeadLetters reports whether a dead letter shows if its job matches.
func inDeadLetters(filter job.Filter) bool {
	for _, known := range []*string{&filter.Type, &filter.Tenant, &filter.Code, &filter.Fingerprint} {
		*known = ""
	}
	filter.FrozenAt, filter.After, filter.Limit, filter.Within = time.Time{}, job.ID{}, 0, 0
	return reflect.ValueOf(filter).IsZero()
}

// conditions are those on the rows of the scan. Dead letters from before they had an error
// code are looked up in the ledger.
func (s scan) conditions(filter job.Filter, args []any) (string, []any) {
	if !s.alone {
		return conditions(filter, args)
	}
	code, fingerprint := filter.Code, filter.Fingerprint
	filter.Code, filter.Fingerprint = "", ""
	all, args := conditions(filter, args)
	if fingerprint != "" {
		args = append(args, fingerprint)
		all += fmt.Sprintf(" and s.fingerprint = $%d", len(args))
	}
	if code != "" {
		args = append(args, code)
		all += fmt.Sprintf(" and (s.error_code = $%[1]d or s.fingerprint = '' and exists (select from jobs j join unsuccessful_attempts a"+
			" on a.job_id = j.job_id and a.fence = j.fence where j.job_id = s.job_id and a.error_code = $%[1]d))", len(args))
	}
	return all, args
}

// conditions are those on the rows of the ledger. A job is running while it has a lease,
// whatever its state there.
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
	where(filter.WithoutScheduled, "(s.state <> 'created' or s.run_at = 'infinity') = $%d", true)
	where(filter.WithoutHeld, "(s.state <> 'created' or s.run_at < 'infinity') = $%d", true)
	where(filter.Worker != "", "coalesce((select l.worker_id from leases l where l.job_id = s.job_id), s.worker_id) = $%d", filter.Worker)
	where(filter.Code != "", "exists (select from unsuccessful_attempts a where a.job_id = s.job_id and a.fence = s.fence and a.error_code = $%d)", filter.Code)
	where(filter.Fingerprint != "", "exists (select from dead_letters d where d.job_id = s.job_id and d.fingerprint = $%d)", filter.Fingerprint)
	where(filter.Parent != job.ID{}, "s.parent_id = $%d", postgres.UUID(filter.Parent))
	where(!filter.FrozenAt.IsZero(), "coalesce(s.finished_at, s.created_at) <= $%d", filter.FrozenAt)
	where(filter.Payload != "", "position($%d in s.payload::text) > 0", filter.Payload)
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
	for _, at := range []time.Time{filter.CreatedBefore, filter.FrozenAt} {
		if at.IsZero() {
			continue
		}
		if bound := firstID(at.Add(clockSlack)); bytes.Compare(bound[:], before[:]) < 0 {
			before = bound
		}
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
