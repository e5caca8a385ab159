package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// editTries limits how often an edit looks for jobs while other statements move them from
// list to list.
const editTries = 20

// Edit changes a job that waits, and returns it as it is afterwards, and whether it has
// gates. For a job that runs or has ended, the error is job.ErrWrongState, and the job is
// returned as it is.
func (s *Store) Edit(ctx context.Context, id job.ID, edit job.Edit) (view job.View, gated bool, err error) {
	var before job.View
	for range editTries {
		done, view, err := s.editOne(ctx, id, edit)
		switch {
		case err != nil:
			return job.View{}, false, err
		case len(done) > 0:
			return view, done[0].Gated, nil
		case view.State.Final() || view.State == job.Running:
			return view, false, fmt.Errorf("edit a job that is %s: %w", view.State, job.ErrWrongState)
		case view.State == before.State && view.UpdatedAt.Equal(before.UpdatedAt):
			if err := s.waiting(ctx, id); err != nil {
				return view, false, fmt.Errorf("edit: %w", err)
			}
			// The job did not move, but was in no list.
			return job.View{}, false, fmt.Errorf("edit a job that is %s: its list disagrees with the ledger; "+
				"run `orchestrator doctor` for details", view.State)
		}
		before = view
	}
	return job.View{}, false, fmt.Errorf("edit: the job moves too fast: %w", job.ErrUnavailable)
}

// EditAll changes the jobs of a page of List, which must be a list of jobs that wait. It
// leaves out those that do not wait any more, or no longer have the tag.
func (s *Store) EditAll(ctx context.Context, filter job.Filter, edit job.Edit) (job.EditPage, error) {
	listed, err := s.list(ctx, s.db.Lists, filter)
	if err != nil {
		return job.EditPage{}, err
	}
	page := job.EditPage{Next: listed.Next}
	left := make(map[job.ID]bool, len(listed.Jobs))
	for _, view := range listed.Jobs {
		left[view.ID] = true
	}
	// A job that moves from one list to another meanwhile may be missed, so the rest is
	// tried again until a try finds none.
	for try := 0; try < editTries && len(left) > 0; try++ {
		wanted := editing{edit: edit, states: filter.States, tag: filter.Tag}
		for id := range left {
			wanted.ids = append(wanted.ids, id)
		}
		done, err := postgres.Write(ctx, s.db.Submissions, "edit", func(ctx context.Context, conn *pgx.Conn) ([]job.Edited, error) {
			batch := &pgx.Batch{}
			edited := wanted.queue(batch)
			postgres.QueueBarrier(batch)
			err := conn.SendBatch(ctx, batch).Close()
			return edited(), err
		})
		if err != nil {
			return page, err
		}
		page.Edited = append(page.Edited, done...)
		for _, one := range done {
			delete(left, one.ID)
		}
		if len(done) == 0 {
			break
		}
	}
	return page, nil
}

func (s *Store) editOne(ctx context.Context, id job.ID, edit job.Edit) ([]job.Edited, job.View, error) {
	type result struct {
		edited []job.Edited
		found  []viewRow
	}
	done, err := postgres.Write(ctx, s.db.Submissions, "edit", func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
		batch := &pgx.Batch{}
		edited := editing{ids: []job.ID{id}, edit: edit}.queue(batch)
		postgres.QueueRows(batch, &done.found, "get", pgx.RowToStructByNameLax[viewRow], postgres.UUID(id))
		postgres.QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		done.edited = edited()
		return done, err
	})
	switch {
	case err != nil:
		return nil, job.View{}, err
	case len(done.found) == 0:
		return nil, job.View{}, postgres.Translate("edit", pgx.ErrNoRows)
	}
	return done.edited, done.found[0].view(), nil
}

// editing is an edit of certain jobs. A job that fits none of the conditions is left alone.
type editing struct {
	ids  []job.ID
	edit job.Edit
	// states and tag are conditions; empty for none.
	states []job.State
	tag    string
	// below is a condition: the priority is below that of the edit.
	below bool
	// hold takes the jobs' due times away.
	hold bool
}

type editedRow struct {
	job.Edited
	TraceParent, TraceState string
}

// queue adds the statements of the edit to a batch: one for each list in which the jobs may
// be. A job that one moves into the list of a later one is found there again, and is as it
// shall be already. The function returns the jobs when the batch is closed.
func (e editing) queue(batch *pgx.Batch) (edited func() []job.Edited) {
	var states, tags pgtype.ArrayGetter
	if len(e.states) > 0 {
		states = postgres.Column(e.states, func(s job.State) string { return string(s) })
	}
	if e.edit.Tags != nil {
		tags = postgres.Column(e.edit.Tags, func(tag string) string { return tag })
	}
	var delay pgtype.Interval
	if e.edit.Delay != nil {
		delay = postgres.Interval(*e.edit.Delay)
	}
	var below *int16
	if e.below {
		below = e.edit.Priority
	}
	ids := postgres.Column(e.ids, func(id job.ID) pgtype.UUID { return postgres.UUID(id) })
	due := postgres.Instant(e.edit.RunAt)
	if e.hold {
		due = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	args := []any{ids, e.edit.Priority, due, delay, tags, states, postgres.Text(e.tag), below}
	var parked, timers, ready []editedRow
	postgres.QueueRows(batch, &parked, "edit_parked", pgx.RowToStructByNameLax[editedRow], args...)
	postgres.QueueRows(batch, &timers, "edit_timers", pgx.RowToStructByNameLax[editedRow], args...)
	postgres.QueueRows(batch, &ready, "edit_ready", pgx.RowToStructByNameLax[editedRow], args...)
	return func() (all []job.Edited) {
		seen := make(map[job.ID]bool)
		for _, rows := range [][]editedRow{parked, timers, ready} {
			for _, row := range rows {
				if seen[row.ID] {
					continue
				}
				seen[row.ID] = true
				row.Trace = traceContext(row.TraceParent, row.TraceState)
				all = append(all, row.Edited)
			}
		}
		return all
	}
}
