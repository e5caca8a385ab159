package store

import (
	"context"
)

// FoldTallies folds up to limit rows of the inbox of tallies into the totals,
// and returns how many. Any number of processes may call it; one folds at a
// time, and the others return at once.
func (s *Store) FoldTallies(ctx context.Context, limit int) (int, error) {
	var folded int
	err := s.worker.QueryRow(ctx, foldTalliesSQL, limit).Scan(&folded)
	return folded, translate("fold tallies", err)
}

// AgeTallies makes what is kept of the recent past coarser the older it is,
// and forgets what is too old to be asked for.
func (s *Store) AgeTallies(ctx context.Context) error {
	if _, err := s.worker.Exec(ctx, ageTalliesSQL); err != nil {
		return translate("age tallies", err)
	}
	_, err := s.worker.Exec(ctx, forgetTalliesSQL)
	return translate("forget tallies", err)
}
