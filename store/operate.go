package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// cancelTries limits how often Cancel looks for a job while other statements move it
// from list to list.
const cancelTries = 20

// The results of cancel.sql: for a waiting job, for one whose slots became free as well,
// and for a running one.
const (
	canceledAtOnce  = "canceled"
	slotsFreed      = "freed"
	followerTold    = "followed"
	cancelRequested = "requested"
)

// Cancel cancels a job that waits, or asks the owner of a running one to stop it.
// It returns the job as it is afterwards, which is still running in the latter
// case. It is no error to cancel a canceled job; for one that has succeeded or is
// dead, the error is job.ErrWrongState. A job whose list disagrees with the ledger
// cannot be canceled.
func (s *Store) Cancel(ctx context.Context, id job.ID) (job.Cancellation, error) {
	var before job.View
	for range cancelTries {
		done, view, err := operate[string](ctx, s, "cancel", id)
		switch {
		case err != nil:
			return job.Cancellation{}, err
		case len(done) > 0 || view.State == job.Canceled:
			return job.Cancellation{
				View: view, Canceled: slices.Contains(done, canceledAtOnce), Requested: slices.Contains(done, cancelRequested),
				Freed: slices.Contains(done, slotsFreed), Followed: slices.Contains(done, followerTold),
			}, nil
		case view.State.Final():
			return job.Cancellation{}, fmt.Errorf("cancel a job that is %s: %w", view.State, job.ErrWrongState)
		case view.State == before.State && view.UpdatedAt.Equal(before.UpdatedAt):
			// The job did not move, but was in no list.
			return job.Cancellation{}, fmt.Errorf("cancel a job that is %s: its list disagrees with the ledger; "+
				"run `orchestrator doctor` for details", view.State)
		}
		before = view
	}
	return job.Cancellation{}, fmt.Errorf("cancel: the job moves too fast: %w", job.ErrUnavailable)
}

// Release makes a held or scheduled job due now. If the job is in any other state
// than created, the error is job.ErrWrongState. So it is, as a *job.WaitsError, for a job
// that waits for others of its workflow, or whose workflow is held.
func (s *Store) Release(ctx context.Context, id job.ID) (job.View, error) {
	return s.move(ctx, "release", id)
}

// Hold keeps a scheduled job until it is released. If the job is in any other state
// than created, the error is job.ErrWrongState; a held job stays held.
func (s *Store) Hold(ctx context.Context, id job.ID) (job.View, error) {
	return s.move(ctx, "hold", id)
}

// Requeue starts a dead job anew, with no attempts charged. If the job is in any
// other state, the error is job.ErrWrongState; if it was blanked, job.ErrErased. If its
// workflow is held or canceled, the error is a *job.WaitsError.
func (s *Store) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	return s.move(ctx, "requeue", id)
}

func (s *Store) move(ctx context.Context, statement string, id job.ID) (job.View, error) {
	moved, view, err := operate[job.ID](ctx, s, statement, id)
	if err == nil && len(moved) == 0 && view.State == job.Dead && view.ErasedAt != nil {
		return job.View{}, fmt.Errorf("%s: %w", statement, job.ErrErased)
	}
	if err == nil && len(moved) == 0 {
		if view.State == job.Created || view.State == job.Dead && statement == "requeue" {
			if err := s.waiting(ctx, id); err != nil {
				return job.View{}, fmt.Errorf("%s: %w", statement, err)
			}
		}
		return job.View{}, fmt.Errorf("%s a job that is %s: %w", statement, view.State, job.ErrWrongState)
	}
	return view, err
}

// operate runs a statement on one job. It returns the statement's rows, and the job as
// it is afterwards. The answer waits for the standby even if the statement changed
// nothing: the statement may depend on a commit that the standby does not have.
func operate[T any](ctx context.Context, s *Store, statement string, id job.ID) ([]T, job.View, error) {
	type result struct {
		rows  []T
		found []viewRow
	}
	done, err := postgres.Write(ctx, s.db.Submissions, statement, func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
		batch := &pgx.Batch{}
		postgres.QueueRows(batch, &done.rows, statement, pgx.RowTo[T], postgres.UUID(id))
		postgres.QueueRows(batch, &done.found, "get", pgx.RowToStructByNameLax[viewRow], postgres.UUID(id))
		postgres.QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return done, err
	})
	if err != nil || len(done.found) == 0 {
		return nil, job.View{}, cmp.Or(err, postgres.Translate(statement, pgx.ErrNoRows))
	}
	return done.rows, done.found[0].view(), nil
}

// Redrive requeues dead jobs that the filter selects, the longest dead first, and
// returns those that it requeued.
func (s *Store) Redrive(ctx context.Context, filter job.DeadLetterFilter) ([]job.Requeued, error) {
	type row struct {
		job.Requeued
		TraceParent, TraceState string
	}
	moved, err := postgres.Confirm(ctx, s.db.Submissions, "redrive", pgx.RowToStructByNameLax[row],
		filter.Limit, filter.Type, filter.Tenant, filter.Code, filter.Fingerprint)
	requeued := make([]job.Requeued, len(moved))
	for i, r := range moved {
		requeued[i] = r.Requeued
		requeued[i].Trace = traceContext(r.TraceParent, r.TraceState)
	}
	return requeued, err
}
