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
		done, view, err := operate(ctx, s, pgx.RowTo[string], cancelSQL, id)
		switch {
		case worthAnotherTry(err):
			continue
		case err != nil:
			return job.Cancellation{}, translate("cancel", err)
		case len(done) > 0 || view.State == job.Canceled:
			return job.Cancellation{
				View: view, Canceled: slices.Contains(done, canceledAtOnce), Requested: slices.Contains(done, cancelRequested),
			}, nil
		case view.State.Final():
			return job.Cancellation{}, fmt.Errorf("cancel a job that is %s: %w", view.State, job.ErrWrongState)
		case view.State == before.State && view.UpdatedAt.Equal(before.UpdatedAt):
			// It did not move, and yet was in no list.
			return job.Cancellation{}, fmt.Errorf("cancel a job that is %s: no list has it as the ledger does; "+
				"`orchestrator doctor` tells more", view.State)
		}
		before = view
	}
	return job.Cancellation{}, fmt.Errorf("cancel: the job moves too fast: %w", job.ErrUnavailable)
}

// operate runs a statement on one job and returns its rows, and the job as it is
// then. The answer waits for the standby also where the statement has changed
// nothing: that it need not, or must not, may rest on a commit that the standby does
// not have.
func operate[T any](ctx context.Context, s *Store, row pgx.RowToFunc[T], sql string, id job.ID) ([]T, job.View, error) {
	type result struct {
		rows  []T
		found []viewRow
	}
	done, err := write(ctx, s, s.submissions, func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
		batch := &pgx.Batch{}
		batch.Queue(sql, uuid(id)).Query(func(rows pgx.Rows) (err error) {
			done.rows, err = pgx.CollectRows(rows, row)
			return err
		})
		batch.Queue(getSQL, uuid(id)).Query(func(rows pgx.Rows) (err error) {
			done.found, err = pgx.CollectRows(rows, pgx.RowToStructByName[viewRow])
			return err
		})
		waitToo(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return done, err
	})
	if err != nil {
		return nil, job.View{}, err
	}
	found, err := only(done.found, nil)
	return done.rows, found.view(), err
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
	for {
		moved, view, err := operate(ctx, s, pgx.RowTo[[16]byte], sql, id)
		switch {
		case worthAnotherTry(err):
			continue
		case err != nil:
			return job.View{}, translate(operation, err)
		case len(moved) == 0:
			return job.View{}, fmt.Errorf("%s a job that is %s: %w", operation, view.State, job.ErrWrongState)
		}
		return view, nil
	}
}

// Redrive requeues dead jobs that the filter chooses, the longest dead first,
// and returns those it requeued.
func (s *Store) Redrive(ctx context.Context, filter job.DeadLetterFilter) ([]job.Requeued, error) {
	type row struct {
		JobID                   [16]byte
		JobType, Tenant         string
		TraceParent, TraceState string
	}
	for {
		moved, err := confirmed(ctx, s, s.submissions, pgx.RowToStructByName[row], redriveSQL, filter.Limit, filter.Type, filter.Tenant)
		if worthAnotherTry(err) {
			continue
		}
		requeued := make([]job.Requeued, len(moved))
		for i, r := range moved {
			requeued[i] = job.Requeued{ID: r.JobID, Type: r.JobType, Tenant: r.Tenant, Trace: traceContext(r.TraceParent, r.TraceState)}
		}
		return requeued, translate("redrive", err)
	}
}
