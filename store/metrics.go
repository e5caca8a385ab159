package store

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Metrics says how the whole system stands.
func (s *Store) Metrics(context.Context, time.Duration) (job.Metrics, error) {
	return job.Metrics{}, errors.ErrUnsupported
}

// FoldTallies folds up to limit tallies into their totals, and returns how
// many it folded.
func (s *Store) FoldTallies(context.Context, int) (int, error) {
	return 0, errors.ErrUnsupported
}
