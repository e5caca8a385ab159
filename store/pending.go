package store

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// WorkerTotals counts the jobs that workers run, and those that they ended
// within the window, by state.
func (s *Store) WorkerTotals(context.Context, time.Duration) (map[job.State]int64, error) {
	return nil, errors.ErrUnsupported
}

// Diagnose looks for what is wrong.
func (s *Store) Diagnose(context.Context) ([]job.Check, error) {
	return nil, errors.ErrUnsupported
}
