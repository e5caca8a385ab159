package store

import (
	"context"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// RollUpTallies adds up to limit rows of the tallies' inbox to the totals, and
// returns how many. Any number of processes may call it: one works at a time, and
// the others return at once.
func (s *Store) RollUpTallies(ctx context.Context, limit int) (int, error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "roll_up_tallies", limit)
}

// AgeTallies merges older tallies and latencies into longer slots, and deletes those that are too
// old for any request.
func (s *Store) AgeTallies(ctx context.Context) error {
	if err := s.db.Worker.Do(ctx, "age_tallies"); err != nil {
		return err
	}
	if err := s.db.Worker.Do(ctx, "forget_tallies"); err != nil {
		return err
	}
	return s.db.Worker.Do(ctx, "age_latencies")
}
