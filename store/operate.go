package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// cancelTries bounds how often Cancel looks for a job that moves from list to
// list under its eyes.
const cancelTries = 20

// What cancel.sql says it has done: with a job that waited, and with one that runs.
const (
	canceledAtOnce  = "canceled"
	cancelRequested = "requested"
)

// Cancel cancels a job that waits, or asks the owner of a running one to stop
// it. It returns the job as it is afterwards: still running in the latter
// case. Canceling a canceled job is no error; a job that has succeeded or is
// dead gives job.ErrWrongState. One that no list has as the ledger does cannot
// be canceled, however often that is tried.
func (s *Store) Cancel(ctx context.Context, id job.ID) (job.Cancellation, error) {
	var before job.View
	for range cancelTries {
		rows, err := s.submissions.Query(ctx, cancelSQL, uuid(id))
		if err != nil {
			return job.Cancellation{}, translate("cancel", err)
		}
		done, undone := pgx.CollectRows(rows, pgx.RowTo[string])
		if undone != nil && !worthAnotherTry(undone) {
			return job.Cancellation{}, translate("cancel", undone)
		}
		view, err := viewOf(ctx, s.submissions, id)
		switch {
		case err != nil:
			return job.Cancellation{}, fmt.Errorf("cancel: %w", err)
		case len(done) > 0 || view.State == job.Canceled:
			return job.Cancellation{
				View: view, AtOnce: slices.Contains(done, canceledAtOnce), Asked: slices.Contains(done, cancelRequested),
			}, nil
		case view.State.Final():
			return job.Cancellation{}, fmt.Errorf("cancel a job that is %s: %w", view.State, job.ErrWrongState)
		case undone == nil && view.State == before.State && view.UpdatedAt.Equal(before.UpdatedAt):
			// It did not move, and yet was in no list.
			return job.Cancellation{}, fmt.Errorf("cancel a job that is %s: no list has it as the ledger does; "+
				"`orchestrator doctor` tells more", view.State)
		}
		before = view
	}
	return job.Cancellation{}, fmt.Errorf("cancel: the job moves too fast: %w", job.ErrUnavailable)
}

// Release makes a held or scheduled job due now. A job in any other state than
// created gives job.ErrWrongState.
func (s *Store) Release(ctx context.Context, id job.ID) (job.View, error) {
	return s.move(ctx, "release", releaseSQL, id)
}

// Hold keeps a scheduled job until it is released. A job in any other state
// than created gives job.ErrWrongState; one that is held already stays so.
func (s *Store) Hold(ctx context.Context, id job.ID) (job.View, error) {
	return s.move(ctx, "hold", holdSQL, id)
}

// Requeue starts a dead job anew, with no attempts charged. A job in any other
// state gives job.ErrWrongState.
func (s *Store) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	return s.move(ctx, "requeue", requeueSQL, id)
}

func (s *Store) move(ctx context.Context, operation, sql string, id job.ID) (job.View, error) {
	moved, err := writeOnce(ctx, s.submissions, sql, uuid(id))
	if err != nil {
		return job.View{}, translate(operation, err)
	}
	view, err := viewOf(ctx, s.submissions, id)
	if err != nil {
		return job.View{}, fmt.Errorf("%s: %w", operation, err)
	}
	if len(moved) == 0 {
		return job.View{}, fmt.Errorf("%s a job that is %s: %w", operation, view.State, job.ErrWrongState)
	}
	return view, nil
}

// Redrive requeues dead jobs that the filter chooses, the longest dead first,
// and returns how many it requeued.
func (s *Store) Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error) {
	moved, err := writeOnce(ctx, s.submissions, redriveSQL, filter.Limit, filter.Type, filter.Tenant)
	return len(moved), translate("redrive", err)
}
