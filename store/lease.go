package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Renew extends the leases of a worker to the given time from now, by the
// database's clock, and marks the worker as alive for as long. That renews its kept
// leases; the others are to be given. It returns the leases that are still held, kept ones that
// were not given among them, and says which of their jobs to cancel; a lease that
// is missing is lost. When the handlers began is noted with their leases. Kept leases that are forgotten,
// because the worker does not know them, expire. Renew has its own connections, so that no other work delays it.
func (s *Store) Renew(ctx context.Context, worker string, leases []job.Lease, forgotten []job.LeaseID, lease time.Duration) ([]job.Renewed, error) {
	leases, forgotten = slices.Clone(leases), slices.Clone(forgotten)
	slices.SortFunc(leases, func(a, b job.Lease) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	return postgres.Write(ctx, s.db.Heartbeats, "renew", func(ctx context.Context, conn *pgx.Conn) (renewed []job.Renewed, err error) {
		var kept []keptRow
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("lock_worker"), worker)
		postgres.QueueRows(batch, &renewed, "renew", pgx.RowToStructByNameLax[job.Renewed],
			postgres.Column(leases, func(l job.Lease) pgtype.UUID { return postgres.UUID(l.JobID) }),
			postgres.Column(leases, func(l job.Lease) pgtype.UUID { return postgres.UUID(l.ID) }),
			postgres.Interval(lease), worker,
			postgres.Column(leases, func(l job.Lease) pgtype.Int4 { return milliseconds(l.Began) }),
			postgres.Column(forgotten, func(id job.LeaseID) pgtype.UUID { return postgres.UUID(id) }))
		postgres.QueueRows(batch, &kept, "kept", pgx.RowToStructByName[keptRow], worker)
		if err := conn.SendBatch(ctx, batch).Close(); err != nil {
			return nil, err
		}
		return kept[0].appendTo(renewed), nil
	})
}

// keptRow are the kept leases of a worker.
type keptRow struct {
	Kept, Canceling []pgtype.UUID
}

func (r keptRow) appendTo(renewed []job.Renewed) []job.Renewed {
	canceling := make(map[job.LeaseID]struct{}, len(r.Canceling))
	for _, id := range r.Canceling {
		canceling[id.Bytes] = struct{}{}
	}
	renewed = slices.Grow(renewed, len(r.Kept))
	for _, id := range r.Kept {
		_, cancel := canceling[id.Bytes]
		renewed = append(renewed, job.Renewed{ID: id.Bytes, CancelRequested: cancel, Kept: true})
	}
	return renewed
}

// expiredRow is a job.Expired with what cannot be scanned into it.
type expiredRow struct {
	job.Expired
	TraceParent string
	TraceState  string
	HeardAt     pgtype.Timestamptz
	LastEndedAt pgtype.Timestamptz
	LastOutcome pgtype.Text
}

// Reap takes over up to limit expired leases, each for the duration given. The
// caller then owns the jobs and must settle them.
func (s *Store) Reap(ctx context.Context, limit int, lease time.Duration) ([]job.Expired, error) {
	found, err := postgres.Change(ctx, s.db.Worker, "reap", pgx.RowToStructByNameLax[expiredRow], limit, postgres.Interval(lease))
	expired := make([]job.Expired, len(found))
	for i, row := range found {
		expired[i] = row.Expired
		expired[i].Trace = traceContext(row.TraceParent, row.TraceState)
		expired[i].HeartbeatAt = row.HeardAt.Time
		expired[i].Last = lastAttempt(row.LastEndedAt, row.LastOutcome)
	}
	return expired, err
}
