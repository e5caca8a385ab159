package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Expire takes up to limit entries whose time has come from the list of jobs that
// expire, and cancels those of the jobs that have not started. It returns these, and how
// many entries it took. Any number of processes may call it: they skip each other's
// entries, and jobs that are being moved at the moment.
func (s *Store) Expire(ctx context.Context, limit int) (lapsed []job.Lapsed, entries int, err error) {
	type row struct {
		job.Lapsed
		Canceled                bool
		TraceParent, TraceState string
	}
	removed, err := postgres.Change(ctx, s.db.Worker, "expire", pgx.RowToStructByNameLax[row], limit)
	for _, r := range removed {
		if r.Canceled {
			r.Trace = traceContext(r.TraceParent, r.TraceState)
			lapsed = append(lapsed, r.Lapsed)
		}
	}
	return lapsed, len(removed), err
}

// NextExpiry returns how long it is until the next job expires; ok is false when none
// does. It may be a job that has started or ended meanwhile.
func (s *Store) NextExpiry(ctx context.Context) (in time.Duration, ok bool, err error) {
	next, err := postgres.Read(ctx, s.db.Worker, "next_expiry", pgx.RowTo[time.Duration])
	if len(next) == 0 {
		return 0, false, err
	}
	return next[0], true, nil
}
