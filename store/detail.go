package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Detail returns everything about a job, or job.ErrNotFound.
func (s *Store) Detail(ctx context.Context, id job.ID) (job.Detail, error) {
	var detail job.Detail
	oneMoment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := s.lookups.read(ctx, "detail", func(conn *pgxpool.Conn) error {
		err := pgx.BeginTxFunc(ctx, conn, oneMoment, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, detailSQL, uuid(id))
			if err != nil {
				return err
			}
			found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[detailRow])
			if err != nil {
				return err
			}
			detail = found.detail()
			detail.Attempts, err = attempts(ctx, tx, id)
			return err
		})
		return translate("detail", err)
	})
	if err != nil {
		return job.Detail{}, err
	}
	return detail, nil
}

// Attempts returns the ended attempts of a job, oldest first; none for a job
// that does not exist.
func (s *Store) Attempts(ctx context.Context, id job.ID) (ended []job.Attempt, err error) {
	err = s.lookups.read(ctx, "attempts", func(conn *pgxpool.Conn) (err error) {
		ended, err = attempts(ctx, conn, id)
		return translate("attempts", err)
	})
	return ended, err
}

// A querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func attempts(ctx context.Context, q querier, id job.ID) ([]job.Attempt, error) {
	rows, err := q.Query(ctx, attemptsSQL, uuid(id))
	if err != nil {
		return nil, err
	}
	type row struct {
		Fence         int64
		Attempt       int
		WorkerID      string
		Plugin        string
		PluginVersion string
		ClaimedAt     time.Time
		EndedAt       time.Time
		Outcome       string
		ErrorCode     string
		Error         string
		Stack         string
		SpanID        string
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, err
	}
	ended := make([]job.Attempt, len(found))
	for i, row := range found {
		ended[i] = job.Attempt{
			Fence: row.Fence, Number: row.Attempt, WorkerID: row.WorkerID,
			Plugin: row.Plugin, PluginVersion: row.PluginVersion,
			ClaimedAt: row.ClaimedAt, EndedAt: row.EndedAt,
			Outcome: job.OutcomeKind(row.Outcome), Code: row.ErrorCode, Error: row.Error,
			Stack: row.Stack, SpanID: row.SpanID,
		}
	}
	return ended, nil
}

type detailRow struct {
	viewRow
	Payload        []byte
	Checkpoint     []byte
	IdempotencyKey string
	Tags           []string
	Priority       int16
	RunAt          *time.Time
	Attempt        int
	MaxAttempts    int
	Interruptions  int
	Crashes        int
	Fence          int64
	Timeout        time.Duration
	LastError      string
	Worker         string
	LeaseWorker    *string
	ClaimedAt      *time.Time
	ExpiresAt      *time.Time
	Canceling      *bool
}

func (r detailRow) detail() job.Detail {
	detail := job.Detail{
		View: r.view(), Payload: r.Payload, Checkpoint: r.Checkpoint, IdempotencyKey: r.IdempotencyKey,
		Tags: r.Tags, Priority: r.Priority, Charged: r.Attempt, MaxAttempts: r.MaxAttempts,
		Interruptions: r.Interruptions, Crashes: r.Crashes, Fence: r.Fence, Timeout: r.Timeout, LastError: r.LastError,
		Worker: r.Worker,
	}
	if r.RunAt != nil {
		detail.RunAt = *r.RunAt
	}
	if r.LeaseWorker != nil {
		detail.Lease = &job.LeaseView{
			Worker: *r.LeaseWorker, ClaimedAt: *r.ClaimedAt, ExpiresAt: *r.ExpiresAt, CancelRequested: *r.Canceling,
		}
	}
	return detail
}
