package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// RollUpTallies folds up to limit rows of the inbox of tallies into the totals,
// and returns how many. Any number of processes may call it; one folds at a
// time, and the others return at once.
func (s *Store) RollUpTallies(ctx context.Context, limit int) (int, error) {
	folded, err := only(changed(ctx, s, s.worker, pgx.RowTo[int], foldTalliesSQL, limit))
	return folded, translate("fold tallies", err)
}

// AgeTallies makes what is kept of the recent past coarser the older it is,
// and forgets what is too old to be asked for.
func (s *Store) AgeTallies(ctx context.Context) error {
	if err := s.exec(ctx, s.worker, ageTalliesSQL); err != nil {
		return translate("age tallies", err)
	}
	return translate("forget tallies", s.exec(ctx, s.worker, forgetTalliesSQL))
}
