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
)

// Renew extends the leases of a worker to the given time from now, by the
// database's clock, and marks the worker as alive for as long. It returns the
// leases that are still held and says which of their jobs to cancel; a lease that
// is missing is lost. When the handlers began is noted with their leases. It has its own connections, so that no other work delays it.
func (s *Store) Renew(ctx context.Context, worker string, leases []job.Lease, lease time.Duration) ([]job.Renewed, error) {
	leases = slices.Clone(leases)
	slices.SortFunc(leases, func(a, b job.Lease) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	return postgres.Change(ctx, s.db.Heartbeats, "renew", pgx.RowToStructByName[job.Renewed],
		postgres.Column(leases, func(l job.Lease) pgtype.UUID { return postgres.UUID(l.JobID) }),
		postgres.Column(leases, func(l job.Lease) pgtype.UUID { return postgres.UUID(l.ID) }),
		postgres.Interval(lease), worker,
		postgres.Column(leases, func(l job.Lease) pgtype.Int4 { return milliseconds(l.Began) }))
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
