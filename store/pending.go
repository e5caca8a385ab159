package store

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Detail returns everything about a job, or job.ErrNotFound.
func (s *Store) Detail(context.Context, job.ID) (job.Detail, error) {
	return job.Detail{}, errors.ErrUnsupported
}

// Workers lists the workers that are known, alive or not.
func (s *Store) Workers(context.Context) ([]job.WorkerView, error) {
	return nil, errors.ErrUnsupported
}

// WorkerTotals counts the jobs that workers run, and those that they ended
// within the window, by state.
func (s *Store) WorkerTotals(context.Context, time.Duration) (map[job.State]int64, error) {
	return nil, errors.ErrUnsupported
}

// Queues says what waits and runs, by job type.
func (s *Store) Queues(context.Context) ([]job.Queue, error) {
	return nil, errors.ErrUnsupported
}

// Diagnose looks for what is wrong.
func (s *Store) Diagnose(context.Context) ([]job.Check, error) {
	return nil, errors.ErrUnsupported
}
