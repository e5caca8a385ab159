package store

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Bounds of one insertion: rows, and bytes of payload unless a single one has
// more. While a statement is under way its parameters are in memory several
// times: as text, as an array, and in the connection's buffer.
const (
	insertRows  = 500
	insertBytes = 4 << 20
)

// portions parts places into insertions.
func portions(entries []entry, places []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for len(places) > 0 {
			n, size := 0, 0
			for n < min(len(places), insertRows) && (n == 0 || size+len(entries[places[n]].Payload) <= insertBytes) {
				size += len(entries[places[n]].Payload)
				n++
			}
			if !yield(places[:n]) {
				return
			}
			places = places[n:]
		}
	}
}

// insertion stores entries by one statement.
type insertion struct {
	entries []entry
	keyed   bool // some have an idempotency key
}

func newInsertion(entries []entry, places []int) insertion {
	i := insertion{entries: make([]entry, len(places))}
	for at, place := range places {
		i.entries[at] = entries[place]
	}
	i.keyed = slices.ContainsFunc(i.entries, func(e entry) bool { return e.IdempotencyKey != "" })
	return i
}

func (i insertion) sql() string {
	if i.keyed {
		return submitSQL
	}
	return submitUnkeyedSQL
}

func (i insertion) columns() []any {
	columns := []any{
		column(i.entries, func(e entry) pgtype.UUID { return uuid(e.ID) }),
		column(i.entries, func(e entry) string { return e.Tenant }),
		column(i.entries, func(e entry) string { return e.Type }),
		column(i.entries, func(e entry) []byte { return e.hash }),
		column(i.entries, func(e entry) string { return string(e.Payload) }),
		column(i.entries, func(e entry) int16 { return e.Priority }),
		column(i.entries, func(e entry) pgtype.Timestamptz { return instant(e.RunAt) }),
		column(i.entries, func(e entry) pgtype.Interval { return interval(e.Delay) }),
		column(i.entries, func(e entry) bool { return e.Hold }),
		column(i.entries, func(e entry) int32 { return int32(e.MaxAttempts) }),
		column(i.entries, func(e entry) pgtype.Interval { return interval(e.Timeout) }),
		column(i.entries, func(e entry) pgtype.Text { return tags(e.Tags) }),
		column(i.entries, func(e entry) string { return e.Trace.Parent }),
		column(i.entries, func(e entry) string { return traceState(e.Trace) }),
	}
	if i.keyed {
		columns = append(columns, column(i.entries, func(e entry) pgtype.Text { return text(e.IdempotencyKey) }))
	}
	return columns
}

// stored reads what the statement answers. Without keys that is little: all are
// stored, and as they were given.
func (i insertion) stored(rows pgx.Rows) ([]submittedRow, error) {
	if i.keyed {
		return submittedRows(rows)
	}
	answer, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[unkeyedRow])
	if err != nil {
		return nil, err
	}
	waiting := make(map[job.ID]bool, len(answer.Waiting))
	for _, id := range answer.Waiting {
		waiting[id] = true
	}
	stored := make([]submittedRow, len(i.entries))
	for at, e := range i.entries {
		state := job.Queued
		if waiting[e.ID] {
			state = job.Created
		}
		stored[at] = submittedRow{
			JobID: e.ID, Tenant: e.Tenant, JobType: e.Type, RequestHash: e.hash, State: string(state),
			CreatedAt: answer.CreatedAt, UpdatedAt: answer.CreatedAt, Fresh: true,
		}
	}
	return stored, nil
}

// unkeyedRow is what submit_unkeyed.sql tells of all jobs together.
type unkeyedRow struct {
	CreatedAt time.Time
	Waiting   [][16]byte // the jobs that wait for their time
}

// tags travel as a JSON array: an array of arrays would have to be rectangular.
func tags(list []string) pgtype.Text {
	if len(list) == 0 {
		return pgtype.Text{}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		panic("store: " + err.Error()) // strings always marshal
	}
	return document(encoded)
}
