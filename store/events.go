package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// record makes events of those ends that the log is to have, in the transaction of the
// round, and returns how many.
func record(ctx context.Context, tx pgx.Tx, ended []job.Ended, log job.EventLog) (int, error) {
	var due []job.Ended
	for _, one := range ended {
		if log.Records(one.Type) {
			due = append(due, one)
		}
	}
	if len(due) == 0 {
		return 0, nil
	}
	_, err := tx.Exec(ctx, sql.Text("record_events"),
		postgres.Column(due, func(e job.Ended) pgtype.UUID { return postgres.UUID(e.ID) }),
		postgres.Column(due, func(e job.Ended) string { return e.Type }),
		postgres.Column(due, func(e job.Ended) string { return e.Tenant }),
		postgres.Column(due, func(e job.Ended) pgtype.Text { return jsonArray(e.Tags) }),
		postgres.Column(due, func(e job.Ended) string { return string(e.State) }),
		postgres.Column(due, func(e job.Ended) pgtype.Timestamptz { return postgres.Instant(e.At) }))
	return len(due), err
}

// ForgetEvents deletes up to limit of the oldest events that the log does not keep, and
// returns how many.
func (s *Store) ForgetEvents(ctx context.Context, log job.EventLog, limit int) (int, error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "forget_events", postgres.Interval(log.Keep), log.Most, limit)
}

// NewEvents returns up to limit events after the id. It uses the worker's connections: one
// loop of the process asks on behalf of all readers.
func (s *Store) NewEvents(ctx context.Context, after int64, limit int) (job.EventPage, error) {
	return eventPage(ctx, s.db.Worker, after, limit)
}

// OldEvents is like NewEvents, for one reader that catches up.
func (s *Store) OldEvents(ctx context.Context, after int64, limit int) (job.EventPage, error) {
	return eventPage(ctx, s.db.Lists, after, limit)
}

// eventRow is a job.Event, all of whose fields are null if there is none.
type eventRow struct {
	Last   int64
	ID     *int64
	At     *time.Time
	JobID  *job.ID
	Type   *string
	Tenant *string
	Tags   []string
	State  *job.State
}

func eventPage(ctx context.Context, from postgres.Reader, after int64, limit int) (page job.EventPage, err error) {
	rows, err := postgres.Read(ctx, from, "events", pgx.RowToStructByName[eventRow], after, limit)
	for _, row := range rows {
		page.Last = row.Last
		if row.ID != nil {
			page.Events = append(page.Events, job.Event{
				ID: *row.ID, At: *row.At, JobID: *row.JobID, Type: *row.Type, Tenant: *row.Tenant, Tags: row.Tags, State: *row.State,
			})
		}
	}
	return page, err
}
