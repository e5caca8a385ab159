package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// try acts on jobs, in the order of their ids. Those that moved to another list at that moment
// are left.
func (p *portion) try(ctx context.Context, ids []job.ID) error {
	batch := &pgx.Batch{}
	did := make([][]string, len(ids))
	var edited func() []job.Edited
	switch o := p.done.Operation; o.Action {
	case job.ActionEdit:
		edited = editing{ids: ids, edit: job.Edit{Priority: o.Priority}, states: ledgerStates(o.Filter.States), tag: o.Filter.Tag}.queue(batch)
	case job.ActionCancel:
		for i, id := range ids {
			postgres.QueueRows(batch, &did[i], "cancel", pgx.RowTo[string], postgres.UUID(id))
		}
	case job.ActionRequeue, job.ActionHold, job.ActionRelease:
		moved := make([][]job.ID, len(ids))
		for i, id := range ids {
			queueMove(batch, &moved[i], &did[i], string(o.Action), id)
		}
	}
	var seen []viewRow
	postgres.QueueRows(batch, &seen, "operated", pgx.RowToStructByNameLax[viewRow], columnOf(ids))
	tx := p.tx
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if edited != nil {
		for _, one := range edited() {
			p.acted(one.ID)
			p.done.Edited = append(p.done.Edited, one)
		}
		return nil
	}
	views := make(map[job.ID]job.View, len(seen))
	for _, row := range seen {
		views[row.ID] = row.view()
	}
	for i, id := range ids {
		if len(did[i]) > 0 {
			p.acted(id)
			p.note(did[i], views[id])
		}
	}
	return nil
}

// queueMove adds a statement to a batch that moves one job. did has an element if it moved.
func queueMove(batch *pgx.Batch, moved *[]job.ID, did *[]string, statement string, id job.ID) {
	batch.Queue(sql.Text(statement), postgres.UUID(id)).Query(func(rows pgx.Rows) (err error) {
		if *moved, err = pgx.CollectRows(rows, pgx.RowTo[job.ID]); len(*moved) > 0 {
			*did = []string{statement}
		}
		return err
	})
}

func (p *portion) acted(id job.ID) {
	delete(p.left, id)
	p.done.Acted++
}

// note remembers what somebody has to be told of once it is committed.
func (p *portion) note(did []string, view job.View) {
	switch p.done.Operation.Action {
	case job.ActionRequeue:
		p.done.Requeued = append(p.done.Requeued, job.Requeued{ID: view.ID, Type: view.Type, Tenant: view.Tenant, Trace: view.Trace})
	case job.ActionCancel:
		p.done.Canceled = append(p.done.Canceled, job.Cancellation{
			View: view, Canceled: slices.Contains(did, canceledAtOnce), Requested: slices.Contains(did, cancelRequested),
			Freed: slices.Contains(did, slotsFreed), Followed: slices.Contains(did, followerTold),
		})
	case job.ActionRelease:
		p.done.Released++
	case job.ActionHold, job.ActionEdit:
	}
}

// ledgerStates are those of jobs as the statements of an edit see them.
func ledgerStates(states []job.State) []job.State {
	if len(states) == 0 {
		return job.ActionEdit.States()
	}
	return states
}

// skip counts the jobs that are left, by the reason. Those that matched when they were locked
// are in still; the others have changed before.
func (p *portion) skip(ctx context.Context, still []job.ID) error {
	if len(p.left) == 0 {
		return nil
	}
	o := &p.done.Operation
	seen, err := postgres.Rows(ctx, p.tx, "operated", pgx.RowToStructByNameLax[viewRow], columnOf(still))
	if err != nil {
		return err
	}
	views := make(map[job.ID]job.View, len(seen))
	for _, row := range seen {
		views[row.ID] = row.view()
	}
	if o.Skipped == nil {
		o.Skipped = make(map[string]int64)
	}
	for id := range p.left {
		why := job.SkippedChanged
		if slices.Contains(still, id) {
			why = o.Skip(views[id])
		}
		o.Skipped[why]++
	}
	return nil
}

// save writes down how far the operation is. The zero id says that there are no more jobs.
func (p *portion) save(ctx context.Context, next job.ID) error {
	o := &p.done.Operation
	if o.Skipped == nil {
		o.Skipped = map[string]int64{}
	}
	skipped, err := json.Marshal(o.Skipped)
	if err != nil {
		return err
	}
	finished := next == job.ID{}
	pause := time.Duration(p.done.Acted) * time.Second / time.Duration(o.Rate)
	tx := p.tx
	err = tx.QueryRow(ctx, sql.Text("save_operation"), postgres.UUID(o.ID), pgtype.UUID{Bytes: next, Valid: !finished},
		o.Found, o.Done, string(skipped), postgres.Interval(pause), finished).Scan(&o.UpdatedAt)
	if err != nil {
		return err
	}
	o.Filter.After = next
	if finished {
		o.State, o.FinishedAt = job.OperationFinished, &o.UpdatedAt
	}
	return nil
}

func columnOf(ids []job.ID) pgtype.ArrayGetter {
	return postgres.Column(ids, func(id job.ID) pgtype.UUID { return postgres.UUID(id) })
}
