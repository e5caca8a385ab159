package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Renew extends the leases of a worker to the given time from now, by the
// database's clock, and says that the worker is alive for as long. It returns
// those that are still held and says which of their jobs are to be canceled;
// a lease that is missing is lost. It uses connections of its own, so that no
// amount of other work delays it.
func (s *Store) Renew(ctx context.Context, worker string, leases []job.Lease, lease time.Duration) ([]job.Renewed, error) {
	leases = slices.Clone(leases)
	slices.SortFunc(leases, func(a, b job.Lease) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	type row struct {
		JobID           [16]byte
		LeaseID         [16]byte
		CancelRequested bool
	}
	found, err := changed(ctx, s, s.heartbeats, pgx.RowToStructByName[row], renewSQL,
		column(leases, func(l job.Lease) pgtype.UUID { return uuid(l.JobID) }),
		column(leases, func(l job.Lease) pgtype.UUID { return uuid(l.ID) }),
		interval(lease), worker)
	if err != nil {
		return nil, translate("renew", err)
	}
	held := make([]job.Renewed, len(found))
	for i, row := range found {
		held[i] = job.Renewed{ID: row.LeaseID, CancelRequested: row.CancelRequested}
	}
	return held, nil
}

// Reap takes over up to limit expired leases, each for the duration given.
// The caller owns the jobs from then on and must settle them.
func (s *Store) Reap(ctx context.Context, limit int, lease time.Duration) ([]job.Expired, error) {
	type row struct {
		JobID           [16]byte
		LeaseID         [16]byte
		Fence           int64
		WorkerID        string
		CancelRequested bool
		JobType         string
		Attempt         int
		MaxAttempts     int
		Interruptions   int
		Crashes         int
		WorkerGone      bool
		Tenant          string
		TraceParent     string
		TraceState      string
		CreatedAt       time.Time
		RunAt           time.Time
		ClaimedAt       time.Time
		ExpiredAt       time.Time
		ReapedAt        time.Time
		HeartbeatAt     pgtype.Timestamptz
		LastEndedAt     pgtype.Timestamptz
		LastOutcome     pgtype.Text
	}
	found, err := changed(ctx, s, s.worker, pgx.RowToStructByName[row], reapSQL, limit, interval(lease))
	if err != nil {
		return nil, translate("reap", err)
	}
	expired := make([]job.Expired, len(found))
	for i, row := range found {
		expired[i] = job.Expired{
			Lease:           job.Lease{JobID: row.JobID, ID: row.LeaseID, Fence: row.Fence},
			Type:            row.JobType,
			Attempt:         row.Attempt,
			MaxAttempts:     row.MaxAttempts,
			Interruptions:   row.Interruptions,
			Crashes:         row.Crashes,
			Worker:          row.WorkerID,
			WorkerGone:      row.WorkerGone,
			CancelRequested: row.CancelRequested,
			Tenant:          row.Tenant,
			Trace:           traceContext(row.TraceParent, row.TraceState),
			CreatedAt:       row.CreatedAt,
			RunAt:           row.RunAt,
			ClaimedAt:       row.ClaimedAt,
			HeartbeatAt:     row.HeartbeatAt.Time,
			ExpiredAt:       row.ExpiredAt,
			ReapedAt:        row.ReapedAt,
			Last:            lastAttempt(row.LastEndedAt, row.LastOutcome),
		}
	}
	return expired, nil
}
