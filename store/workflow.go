package store

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// workflowPortion bounds the jobs of a workflow that one statement holds or cancels.
const workflowPortion = 500

// Workflows returns the workflows that the filter selects, newest first.
func (s *Store) Workflows(ctx context.Context, filter job.WorkflowFilter) ([]job.Workflow, error) {
	var before pgtype.UUID
	if filter.Before != nil {
		before = postgres.UUID(*filter.Before)
	}
	return postgres.Read(ctx, s.db.StaleLists, "workflows", pgx.RowToStructByName[job.Workflow],
		filter.Tenant, filter.Unfinished, before, filter.Limit)
}

// Workflow returns a workflow without its jobs, or job.ErrNoWorkflow.
func (s *Store) Workflow(ctx context.Context, id job.ID) (job.Workflow, error) {
	found, err := postgres.Read(ctx, s.db.Lookups, "workflow", pgx.RowToStructByName[job.Workflow], postgres.UUID(id))
	if len(found) == 0 {
		return job.Workflow{}, cmp.Or(err, job.ErrNoWorkflow)
	}
	return found[0], nil
}

// WorkflowDetail returns a workflow with all of its jobs, or job.ErrNoWorkflow.
func (s *Store) WorkflowDetail(ctx context.Context, id job.ID) (detail job.WorkflowDetail, err error) {
	err = s.db.Lists.Snapshot(ctx, "workflow detail", "", func(tx pgx.Tx) error {
		found, err := postgres.Rows(ctx, tx, "workflow", pgx.RowToStructByName[job.Workflow], postgres.UUID(id))
		if len(found) == 0 {
			return err
		}
		steps, err := postgres.Rows(ctx, tx, "workflow_steps", pgx.RowToStructByName[job.WorkflowStepView], postgres.UUID(id))
		detail = job.WorkflowDetail{Workflow: found[0], Steps: steps}
		return err
	})
	if err == nil && detail.ID == (job.ID{}) {
		err = job.ErrNoWorkflow
	}
	return detail, err
}

// CancelWorkflow makes sure that no more jobs of the workflow become due. CancelPortion and
// Cancel then end its jobs. For a workflow that has finished, the error is
// job.ErrWrongState, and for one that is not there job.ErrNoWorkflow.
func (s *Store) CancelWorkflow(ctx context.Context, id job.ID) error {
	return s.mark(ctx, "cancel_workflow", id)
}

// HoldWorkflow makes sure that no more jobs of the workflow become due until ReleaseWorkflow,
// and holds those that have not started: an attempt that runs, or waits for its retry, goes
// on. The errors are those of CancelWorkflow.
func (s *Store) HoldWorkflow(ctx context.Context, id job.ID) error {
	if err := s.mark(ctx, "hold_workflow", id, true); err != nil {
		return err
	}
	for range editTries {
		for {
			held, err := s.holdPortion(ctx, id)
			if err != nil {
				return err
			}
			if held < workflowPortion {
				break
			}
		}
		left, err := s.holdableJobs(ctx, id)
		if err != nil || len(left) == 0 {
			return err
		}
	}
	return nil // The others are claimed by now.
}

// holdable are the states from which a job of a workflow is held.
var holdable = []job.State{job.Created, job.Queued}

func (s *Store) holdableJobs(ctx context.Context, workflow job.ID) ([]job.ID, error) {
	return postgres.Read(ctx, s.db.Submissions, "holdable_workflow_jobs", pgx.RowTo[job.ID], postgres.UUID(workflow), workflowPortion)
}

// holdPortion holds some jobs that wait. Their due times are kept for the release.
func (s *Store) holdPortion(ctx context.Context, workflow job.ID) (int, error) {
	ids, err := s.holdableJobs(ctx, workflow)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return postgres.Write(ctx, s.db.Submissions, "hold workflow", func(ctx context.Context, conn *pgx.Conn) (int, error) {
		batch := &pgx.Batch{}
		var noted []job.ID
		postgres.QueueRows(batch, &noted, "note_due", pgx.RowTo[job.ID], uuids(ids))
		held := editing{ids: ids, hold: true, states: holdable}.queue(batch)
		err := conn.SendBatch(ctx, batch).Close()
		return len(held()), err
	})
}

// ReleaseWorkflow lets the jobs of a held workflow become due again. SweepWorkflows then makes
// those due for which nothing is missing. The errors are those of CancelWorkflow.
func (s *Store) ReleaseWorkflow(ctx context.Context, id job.ID) error {
	return s.mark(ctx, "hold_workflow", id, false)
}

// mark runs a statement that marks an unfinished workflow.
func (s *Store) mark(ctx context.Context, statement string, id job.ID, args ...any) error {
	found, err := postgres.Confirm(ctx, s.db.Submissions, statement, pgx.RowTo[job.ID], append([]any{postgres.UUID(id)}, args...)...)
	if err != nil || len(found) > 0 {
		return err
	}
	if _, err := s.Workflow(ctx, id); err != nil {
		return err
	}
	return job.ErrWrongState
}

// OpenWorkflowJobs returns up to some hundred jobs of a workflow that are in one of the
// states of the ledger: without those that run, or if running, without those that have been
// asked to stop. It leaves out those that are held.
func (s *Store) OpenWorkflowJobs(ctx context.Context, id job.ID, running bool, states ...job.State) ([]job.ID, error) {
	return postgres.Read(ctx, s.db.Submissions, "open_workflow_jobs", pgx.RowTo[job.ID], postgres.UUID(id),
		postgres.Column(states, func(s job.State) string { return string(s) }), workflowPortion, running)
}

// CancelPortion cancels some jobs of a canceled workflow that wait for others or for their
// time, and returns them; none if there are none left.
func (s *Store) CancelPortion(ctx context.Context, id job.ID) ([]job.ID, error) {
	waiting, err := postgres.Read(ctx, s.db.Submissions, "waiting_workflow_jobs", pgx.RowTo[job.ID], postgres.UUID(id), workflowPortion)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	doomed := make([]doomedRow, len(waiting))
	for i, one := range waiting {
		doomed[i] = doomedRow{JobID: one, Reason: "canceled: its workflow was canceled"}
	}
	return postgres.Write(ctx, s.db.Submissions, "cancel workflow", func(ctx context.Context, conn *pgx.Conn) ([]job.ID, error) {
		return cancelWaiting(ctx, conn, doomed)
	})
}

// predecessorsTimeout bounds the read of results for a claim, so that it takes little of the
// time of the jobs that need none.
const predecessorsTimeout = 2 * time.Second

// predecessorRow is a job before the job of.
type predecessorRow struct {
	job.Predecessor

	OfID job.ID
}

// predecessors adds to claimed jobs of workflows what has become of the jobs before them.
// It asks nothing if no job is followed.
func (s *Store) predecessors(ctx context.Context, claimed []job.Claimed) error {
	var ids []job.ID
	at := make(map[job.ID]int)
	for i := range claimed {
		if claimed[i].Followed {
			ids = append(ids, claimed[i].JobID)
			at[claimed[i].JobID] = i
		}
	}
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, predecessorsTimeout)
	defer cancel()
	found, err := postgres.Read(ctx, s.db.Worker, "predecessors", pgx.RowToStructByName[predecessorRow], uuids(ids), job.MaxPredecessorBytes)
	for _, row := range found {
		of := &claimed[at[row.OfID]]
		of.Predecessors = append(of.Predecessors, row.Predecessor)
	}
	return err
}

// waiting returns a *job.WaitsError if the job may not start because it waits for others of its
// workflow, or because that is held or canceled.
func (s *Store) waiting(ctx context.Context, id job.ID) error {
	found, err := postgres.Read(ctx, s.db.Submissions, "waits_workflow", pgx.RowToStructByName[job.WorkflowWait], postgres.UUID(id), job.MaxWaitNames)
	if err == nil && len(found) > 0 && (found[0].Missing > 0 || found[0].Held || found[0].Canceled) {
		err = &job.WaitsError{Wait: found[0]}
	}
	return err
}

// readWorkflow adds to the place of a created job what it waits for in its workflow.
func readWorkflow(ctx context.Context, tx pgx.Tx, id job.ID, place *job.Place) error {
	found, err := postgres.Rows(ctx, tx, "waits_workflow", pgx.RowToStructByName[job.WorkflowWait], postgres.UUID(id), job.MaxWaitNames)
	if len(found) > 0 {
		place.Workflow = &found[0]
	}
	return err
}
