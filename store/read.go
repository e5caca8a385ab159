package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// viewRow is a job.View with what cannot be scanned into it.
type viewRow struct {
	job.View
	TraceParent string
	TraceState  string
}

func (r viewRow) view() job.View {
	r.Trace = traceContext(r.TraceParent, r.TraceState)
	return r.View
}

// Get returns the public view of a job, or job.ErrNotFound.
func (s *Store) Get(ctx context.Context, id job.ID) (job.View, error) {
	found, err := postgres.Read(ctx, s.db.Lookups, "get", pgx.RowToStructByNameLax[viewRow], postgres.UUID(id))
	if len(found) == 0 {
		return job.View{}, cmp.Or(err, postgres.Translate("get", pgx.ErrNoRows))
	}
	return found[0].view(), nil
}

// Ended returns the jobs that have ended. It uses the worker's connections: the
// worker's loop asks on behalf of all waiting clients.
func (s *Store) Ended(ctx context.Context, ids []job.ID) ([]job.View, error) {
	found, err := postgres.Read(ctx, s.db.Worker, "ended", pgx.RowToStructByNameLax[viewRow],
		postgres.Column(ids, func(id job.ID) pgtype.UUID { return postgres.UUID(id) }))
	views := make([]job.View, len(found))
	for i, row := range found {
		views[i] = row.view()
	}
	return views, err
}

// detailRow is a job.Detail with what cannot be scanned into it.
type detailRow struct {
	job.Detail
	TraceParent string
	TraceState  string
	DueAt       *time.Time
	LapsesAt    *time.Time
	LeaseWorker *string
	ClaimedAt   *time.Time
	ExpiresAt   *time.Time
	BeganAt     *time.Time
	Canceling   *bool
	ParentID    pgtype.UUID
	OriginalID  pgtype.UUID
	WorkflowID  pgtype.UUID
}

// Detail returns everything about a job, or job.ErrNotFound.
func (s *Store) Detail(ctx context.Context, id job.ID) (detail job.Detail, err error) {
	err = s.db.Lookups.Snapshot(ctx, "detail", "", func(tx pgx.Tx) error {
		found, err := postgres.Rows(ctx, tx, "detail", pgx.RowToStructByNameLax[detailRow], postgres.UUID(id), job.MaxResubmissions)
		if len(found) == 0 {
			return cmp.Or(err, pgx.ErrNoRows)
		}
		row := found[0]
		detail = row.Detail
		detail.Trace = traceContext(row.TraceParent, row.TraceState)
		detail.Parent, detail.ResubmissionOf, detail.Workflow = row.ParentID.Bytes, row.OriginalID.Bytes, row.WorkflowID.Bytes
		if len(detail.Resubmissions) == 0 {
			detail.Resubmissions = nil
		}
		if row.DueAt != nil {
			detail.RunAt = *row.DueAt
		}
		if row.LapsesAt != nil {
			detail.ExpiresAt = *row.LapsesAt
		}
		if row.LeaseWorker != nil {
			detail.Lease = &job.LeaseView{
				Worker: *row.LeaseWorker, ClaimedAt: *row.ClaimedAt, BeganAt: row.BeganAt, ExpiresAt: *row.ExpiresAt, CancelRequested: *row.Canceling,
			}
		}
		if detail.Attempts, err = postgres.Rows(ctx, tx, "attempts", pgx.RowToStructByName[job.Attempt], postgres.UUID(id)); err != nil {
			return err
		}
		if detail.State != job.Running && !detail.State.Final() {
			detail.Waits, err = waits(ctx, tx, id)
		}
		return err
	})
	return detail, err
}

// Logs returns what the attempts of a job have logged, oldest first, as the filter
// selects. It leaves out attempts that have logged nothing. A job that does not
// exist has no logs.
func (s *Store) Logs(ctx context.Context, id job.ID, filter job.LogFilter) ([]job.AttemptLog, error) {
	number := pgtype.Int4{Int32: int32(filter.Number), Valid: filter.Number != 0}
	logs, err := postgres.Read(ctx, s.db.Lookups, "logs", pgx.RowToStructByName[job.AttemptLog], postgres.UUID(id), number, filter.Limit)
	slices.Reverse(logs)
	return logs, err
}
