package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// mostLevels and mostCanceled bound how far one round follows jobs that are canceled because
// of others. The next round goes on: their ends are in the inbox.
const (
	mostLevels   = 50
	mostCanceled = followBatch
)

// workflowEnd is the end of a job, as far as its workflow is concerned.
type workflowEnd struct {
	JobID job.ID
	State job.State
}

// workflowEnds are the ends of all jobs, also of those that are not in the ledger any more.
func workflowEnds(rows []endedRow) []workflowEnd {
	ends := make([]workflowEnd, len(rows))
	for i, row := range rows {
		ends[i] = workflowEnd{JobID: row.ID, State: row.State}
	}
	return ends
}

// endedStepRow is a job that has ended for its workflow just now.
type endedStepRow struct {
	JobID      job.ID
	WorkflowID job.ID
	State      job.State
	Completes  bool
}

// followWorkflows counts ends in the workflows of the jobs, makes those due for which nothing
// is missing any more, and cancels those that cannot go on. It does nothing for an end that it
// has counted before. Only the one who follows may call it.
func followWorkflows(ctx context.Context, tx pgx.Tx, ends []workflowEnd, done *job.Following) error {
	for level := 0; len(ends) > 0 && level < mostLevels && len(done.Canceled) < mostCanceled; level++ {
		canceled, err := followLevel(ctx, tx, ends, done)
		if err != nil {
			return err
		}
		ends = ends[:0]
		for _, id := range canceled {
			ends = append(ends, workflowEnd{JobID: id, State: job.Canceled})
		}
		done.Canceled = append(done.Canceled, canceled...)
	}
	return nil
}

// followLevel does that for the jobs right behind those that have ended. It returns the
// jobs that it has canceled.
func followLevel(ctx context.Context, tx pgx.Tx, ends []workflowEnd, done *job.Following) ([]job.ID, error) {
	ends = lastEnds(ends)
	ids := postgres.Column(ends, func(e workflowEnd) pgtype.UUID { return postgres.UUID(e.JobID) })
	batch := &pgx.Batch{}
	var locked []job.ID
	var ended []endedStepRow
	postgres.QueueRows(batch, &locked, "lock_workflows", pgx.RowTo[job.ID], ids)
	postgres.QueueRows(batch, &ended, "end_workflow_jobs", pgx.RowToStructByName[endedStepRow], ids,
		postgres.Column(ends, func(e workflowEnd) string { return string(e.State) }))
	if err := tx.SendBatch(ctx, batch).Close(); err != nil || len(locked) == 0 {
		return nil, err
	}
	counts := countsOf(ends, ended)
	batch = &pgx.Batch{}
	var finished []job.WorkflowCount
	var due []job.ID
	var doomed []doomedRow
	endedIDs, workflows := uuids(counts.ended), uuids(counts.workflows())
	postgres.QueueRows(batch, &finished, "count_workflows", pgx.RowToStructByName[job.WorkflowCount], counts.columns()...)
	batch.Queue(sql.Text("count_predecessors"), endedIDs)
	batch.Queue(sql.Text("complete_workflows"), workflows)
	if len(counts.canceled)+len(counts.dead) > 0 {
		postgres.QueueRows(batch, &doomed, "doomed", pgx.RowToStructByName[doomedRow], uuids(counts.canceled), uuids(counts.dead))
	} else {
		postgres.QueueRows(batch, &due, "start_workflow_jobs", pgx.RowTo[job.ID], endedIDs, workflows, uuids(nil))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	var canceled []job.ID
	if len(counts.canceled)+len(counts.dead) > 0 {
		// Those that cannot go on are canceled before the others are made due.
		var err error
		if canceled, err = cancelWaiting(ctx, tx, doomed); err != nil {
			return nil, err
		}
		if due, err = changed(ctx, tx, "start_workflow_jobs", pgx.RowTo[job.ID], endedIDs, workflows, uuids(nil)); err != nil {
			return nil, err
		}
	}
	done.Due += len(due)
	done.Workflows = append(done.Workflows, finished...)
	return canceled, nil
}

// lastEnds leaves one end of each job: of one that has died, was requeued and has succeeded
// since, only the success counts.
func lastEnds(ends []workflowEnd) (last []workflowEnd) {
	at := make(map[job.ID]int, len(ends))
	for _, end := range ends {
		i, seen := at[end.JobID]
		switch {
		case !seen:
			at[end.JobID] = len(last)
			last = append(last, end)
		case end.State != job.Dead:
			last[i] = end
		}
	}
	return last
}

type doomedRow struct {
	JobID   job.ID
	Skipped bool
	Reason  string
}

// cancelWaiting cancels jobs that wait for their time, and returns those that it found.
func cancelWaiting(ctx context.Context, on sender, doomed []doomedRow) ([]job.ID, error) {
	if len(doomed) == 0 {
		return nil, nil
	}
	return changed(ctx, on, "cancel_waiting", pgx.RowTo[job.ID],
		postgres.Column(doomed, func(r doomedRow) pgtype.UUID { return postgres.UUID(r.JobID) }),
		postgres.Column(doomed, func(r doomedRow) string { return r.Reason }),
		postgres.Column(doomed, func(r doomedRow) bool { return r.Skipped }))
}

// sender is a connection or a transaction of a write.
type sender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// changed runs a statement within a write, and returns its rows.
func changed[T any](ctx context.Context, on sender, statement string, row pgx.RowToFunc[T], args ...any) (rows []T, err error) {
	batch := &pgx.Batch{}
	postgres.QueueRows(batch, &rows, statement, row, args...)
	err = on.SendBatch(ctx, batch).Close()
	return rows, err
}

// workflowCounts is what ends change in workflows.
type workflowCounts struct {
	ended          []job.ID // have ended just now
	canceled, dead []job.ID // those after them may not go on
	of             map[job.ID]*workflowChange
}

type workflowChange struct {
	ended, unsuccessful int32
	completed           bool
}

func countsOf(ends []workflowEnd, ended []endedStepRow) workflowCounts {
	c := workflowCounts{of: make(map[job.ID]*workflowChange)}
	for _, row := range ended {
		c.ended = append(c.ended, row.JobID)
		change := c.of[row.WorkflowID]
		if change == nil {
			change = new(workflowChange)
			c.of[row.WorkflowID] = change
		}
		if row.Completes {
			change.completed = true
		} else {
			change.ended++
		}
		if row.State != job.Succeeded {
			change.unsuccessful++
		}
		if row.State == job.Canceled {
			c.canceled = append(c.canceled, row.JobID)
		}
	}
	for _, end := range ends {
		if end.State == job.Dead && !slices.Contains(c.ended, end.JobID) {
			c.dead = append(c.dead, end.JobID)
		}
	}
	return c
}

// workflows are the workflows, in the order of their ids.
func (c workflowCounts) workflows() []job.ID {
	ids := make([]job.ID, 0, len(c.of))
	for id := range c.of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b job.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

func (c workflowCounts) columns() []any {
	ids := c.workflows()
	return []any{
		uuids(ids),
		postgres.Column(ids, func(id job.ID) int32 { return c.of[id].ended }),
		postgres.Column(ids, func(id job.ID) int32 { return c.of[id].unsuccessful }),
		postgres.Column(ids, func(id job.ID) bool { return c.of[id].completed }),
		uuids(c.dead),
	}
}

func uuids(ids []job.ID) pgtype.ArrayGetter {
	return postgres.Column(ids, func(id job.ID) pgtype.UUID { return postgres.UUID(id) })
}

// SweepWorkflows does for workflows what following has left undone: it counts jobs that have
// ended unnoticed, and makes due what should be. Orchestrators that know nothing of workflows
// end jobs unnoticed, and so does whoever cancels a workflow with dead jobs.
func (s *Store) SweepWorkflows(ctx context.Context, workflows []job.ID) (job.Following, error) {
	return postgres.Write(ctx, s.db.Worker, "sweep workflows", func(ctx context.Context, conn *pgx.Conn) (done job.Following, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			done = job.Following{}
			batch := &pgx.Batch{}
			batch.Queue(sql.Text("lock_following"))
			var ends []workflowEnd
			postgres.QueueRows(batch, &ends, "uncounted", pgx.RowToStructByName[workflowEnd], uuids(workflows))
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return err
			}
			if err := followWorkflows(ctx, tx, ends, &done); err != nil {
				return err
			}
			batch = &pgx.Batch{}
			batch.Queue(sql.Text("complete_workflows"), uuids(workflows))
			var due []job.ID
			postgres.QueueRows(batch, &due, "start_workflow_jobs", pgx.RowTo[job.ID], uuids(nil), uuids(nil), uuids(workflows))
			err := tx.SendBatch(ctx, batch).Close()
			done.Due += len(due)
			return err
		})
		return done, err
	})
}

// UnfinishedWorkflows returns up to limit workflows after an id that have not finished; if
// canceling, only those that somebody has canceled.
func (s *Store) UnfinishedWorkflows(ctx context.Context, after job.ID, limit int, canceling bool) ([]job.ID, error) {
	return postgres.Read(ctx, s.db.Worker, "unfinished_workflows", pgx.RowTo[job.ID], postgres.UUID(after), limit, canceling)
}

// tidyBatch is how many finished workflows one statement looks at.
const tidyBatch = 200

// TidyWorkflows deletes those of the next finished workflows after an id whose jobs are all
// gone from the ledger. One with a key is only blanked until keys has passed since its end; nil
// for ever. It returns where to go on, and whether there may be more.
func (s *Store) TidyWorkflows(ctx context.Context, after job.ID, keys *time.Duration) (next job.ID, more bool, err error) {
	var kept pgtype.Interval
	if keys != nil {
		kept = postgres.Interval(*keys)
	}
	looked, err := postgres.Change(ctx, s.db.Worker, "tidy_workflows", pgx.RowTo[job.ID], postgres.UUID(after), tidyBatch, kept)
	if err != nil || len(looked) == 0 {
		return after, false, err
	}
	return looked[len(looked)-1], len(looked) == tidyBatch, nil
}
