package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// scanAtMost bounds the rows that are looked at for one page: about 20 ms
	// of work.
	scanAtMost = 20_000
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
	l := newListing(filter)
	rows, err := s.work.Query(ctx, l.jobs(), l.args...)
	if err != nil {
		return job.Page{}, translate("list", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[viewRow])
	if err != nil {
		return job.Page{}, translate("list", err)
	}
	if len(found) > filter.Limit {
		found = found[:filter.Limit]
		return job.Page{Jobs: views(found), Next: found[filter.Limit-1].JobID}, nil
	}
	// Either these were the last, or the scan ended at its bound.
	rows, err = s.work.Query(ctx, l.end(), l.args[:l.scanArgs]...)
	if err != nil {
		return job.Page{}, translate("list", err)
	}
	ends, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return job.Page{}, translate("list", err)
	}
	page := job.Page{Jobs: views(found)}
	if len(ends) > 0 {
		page.Next = ends[0]
	}
	return page, nil
}

// listing builds the two statements of a page: the only ones that are put
// together from parts, since every filter is a condition of its own. The
// source is scanned by an index that gives the newest first; what the index
// does not know is looked at in the rows that it finds.
type listing struct {
	source string
	// scan holds the conditions that the index decides, rows the others.
	scan, rows []string
	args       []any
	scanArgs   int
	limit      int
}

func newListing(filter job.Filter) *listing {
	l := &listing{source: sourceOf(filter.States), limit: filter.Limit}
	byTenant := l.source == "jobs" && filter.Tenant != "" && filter.Tenant != job.DefaultTenant
	byType := l.source == "jobs" && filter.Type != "" && !byTenant

	if filter.After != (job.ID{}) {
		l.where(&l.scan, "job_id < %s", uuid(filter.After))
	}
	if !filter.CreatedFrom.IsZero() {
		l.where(&l.scan, "job_id >= %s", uuid(firstID(filter.CreatedFrom.Add(-clockSlack))))
	}
	if !filter.CreatedBefore.IsZero() {
		l.where(&l.scan, "job_id < %s", uuid(firstID(filter.CreatedBefore.Add(clockSlack))))
	}
	if byTenant {
		l.scan = append(l.scan, "tenant <> 'default'") // as the index has it
		l.where(&l.scan, "tenant = %s", filter.Tenant)
	}
	if byType {
		l.where(&l.scan, "job_type = %s", filter.Type)
	}
	l.scanArgs = len(l.args)

	if filter.Tenant != "" && !byTenant {
		l.where(&l.rows, "j.tenant = %s", filter.Tenant)
	}
	if filter.Type != "" && !byType {
		l.where(&l.rows, "j.job_type = %s", filter.Type)
	}
	if !filter.CreatedFrom.IsZero() {
		l.where(&l.rows, "j.created_at >= %s", filter.CreatedFrom)
	}
	if !filter.CreatedBefore.IsZero() {
		l.where(&l.rows, "j.created_at < %s", filter.CreatedBefore)
	}
	if filter.Tag != "" {
		l.where(&l.rows, "%s = any(j.tags)", filter.Tag)
	}
	if len(filter.States) > 0 {
		states := make([]string, len(filter.States))
		for i, state := range filter.States {
			states[i] = string(state)
		}
		l.where(&l.rows, "j.state = any(%s::text[]::job_state[])", states)
	}
	return l
}

// sourceOf is the narrowest table that holds all jobs of the states and has
// them in the order of their ids.
func sourceOf(states []job.State) string {
	if len(states) == 1 {
		switch states[0] {
		case job.Running:
			return "leases"
		case job.Dead:
			return "dead_letters"
		}
	}
	return "jobs"
}

// where adds a condition on a value, which stands where the %s is.
func (l *listing) where(conditions *[]string, condition string, value any) {
	l.args = append(l.args, value)
	*conditions = append(*conditions, fmt.Sprintf(condition, fmt.Sprintf("$%d", len(l.args))))
}

// jobs finds the jobs of the page, and one more if there is one.
func (l *listing) jobs() string {
	return fmt.Sprintf(`
select j.job_id, j.job_type, j.tenant, j.state::text as state, j.created_at, j.updated_at, j.started_at,
    j.finished_at, j.progress::text as progress, j.result::text as result
from (select job_id from %s%s order by job_id desc limit %d) s
join jobs j on j.job_id = s.job_id%s
order by s.job_id desc
limit %d`, l.source, all(l.scan), scanAtMost, all(l.rows), l.limit+1)
}

// end finds the last row that jobs may look at, if there are so many.
func (l *listing) end() string {
	return fmt.Sprintf("select job_id from %s%s order by job_id desc offset %d limit 1",
		l.source, all(l.scan), scanAtMost-1)
}

func all(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(conditions, " and ")
}

// firstID is the lowest id made at that millisecond (RFC 9562, UUIDv7).
func firstID(at time.Time) job.ID {
	var id job.ID
	milliseconds := max(at.UnixMilli(), 0)
	binary.BigEndian.PutUint64(id[:8], uint64(milliseconds)<<16)
	return id
}
