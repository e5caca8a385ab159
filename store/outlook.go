package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Outlook returns what there is for the loops that maintain to do before the next look, which is
// after the time given.
func (s *Store) Outlook(ctx context.Context, next time.Duration) (job.Outlook, error) {
	seen, err := postgres.Read(ctx, s.db.Worker, "outlook", pgx.RowToStructByName[job.Outlook], postgres.Interval(next))
	if err != nil {
		return job.Outlook{}, err
	}
	return seen[0], nil
}
