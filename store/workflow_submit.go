package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// workflowTries is how often a workflow is stored again whose commit was not answered.
const workflowTries = 3

// SubmitWorkflow stores a workflow with all of its jobs, or nothing. If its key is known, it
// returns the workflow that has it, or job.ErrKeyReused if that differs. It is safe to submit
// the same id again. Everything is on disk on return.
func (s *Store) SubmitWorkflow(ctx context.Context, w job.WorkflowSubmission) (job.WorkflowReceipt, error) {
	hash := workflowHash(w)
	for try := 1; ; try++ {
		receipt, err := s.submitWorkflow(ctx, w, hash)
		// A workflow that was stored after all is found by its key or its id.
		if err == nil || !errors.Is(err, job.ErrOutcomeUnknown) || ctx.Err() != nil || try == workflowTries {
			return receipt, err
		}
	}
}

type submittedWorkflowRow struct {
	ID          job.ID
	RequestHash []byte
	CreatedAt   time.Time
	Fresh       bool
}

func (s *Store) submitWorkflow(ctx context.Context, w job.WorkflowSubmission, hash []byte) (job.WorkflowReceipt, error) {
	steps := newWorkflowRows(w)
	b := newBatch(steps.jobs)
	type result struct {
		receipt job.WorkflowReceipt
		reused  bool // the key, for something else
	}
	done, err := postgres.Write(ctx, s.db.Submissions, "submit workflow", func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			found, err := changed(ctx, tx, "submit_workflow", pgx.RowToStructByName[submittedWorkflowRow],
				postgres.UUID(w.ID), w.Tenant, postgres.Text(w.Name), postgres.Text(w.IdempotencyKey), hash, len(w.Jobs), steps.last)
			if err != nil {
				return err
			}
			row := found[0]
			done.receipt = job.WorkflowReceipt{ID: row.ID, CreatedAt: row.CreatedAt, Replayed: !row.Fresh && row.ID != w.ID}
			if !row.Fresh {
				// The hash of a workflow with an erased job is empty: its key is enough.
				done.reused = len(row.RequestHash) > 0 && !bytes.Equal(row.RequestHash, hash)
				return nil
			}
			done.receipt.Jobs, err = steps.store(ctx, tx, b)
			return err
		})
		return done, err
	})
	if err == nil && done.reused {
		return job.WorkflowReceipt{}, job.ErrKeyReused
	}
	return done.receipt, err
}

// workflowRows are the rows of the jobs of a new workflow.
type workflowRows struct {
	id   job.ID
	jobs []job.Submission // as they are stored; the last one is OnComplete
	last pgtype.UUID      // OnComplete; null for none
	// step has what only the workflow knows of each of the jobs.
	steps []job.WorkflowStep
}

func newWorkflowRows(w job.WorkflowSubmission) workflowRows {
	rows := workflowRows{id: w.ID, steps: slices.Clone(w.Jobs)}
	if w.OnComplete != nil {
		rows.steps = append(rows.steps, job.WorkflowStep{Submission: *w.OnComplete, OnDeath: job.OnDeathWait})
		rows.last = postgres.UUID(w.OnComplete.ID)
	}
	for i, step := range rows.steps {
		step.Followed = true
		if rows.missing(i) > 0 {
			// It becomes due when the follower says so.
			step.Hold, step.RunAt, step.Delay = true, time.Time{}, 0
		}
		rows.jobs = append(rows.jobs, step.Submission)
	}
	return rows
}

// missing is how many jobs must end before the one at the index is due.
func (r workflowRows) missing(i int) int32 {
	if r.last.Valid && i == len(r.steps)-1 {
		return 1 // all the others
	}
	return int32(len(r.steps[i].After))
}

// store inserts the jobs, in statements of some hundred, and then how they hang together.
func (r workflowRows) store(ctx context.Context, tx pgx.Tx, b batch) ([]job.Receipt, error) {
	receipts := make(map[job.ID]job.Receipt, len(r.jobs))
	for in := range insertions(b.entries, b.distinct) {
		rows, err := tx.Query(ctx, sql.Text(in.statement()), in.columns()...)
		if err != nil {
			return nil, err
		}
		stored, err := in.stored(rows)
		if err != nil {
			return nil, err
		}
		for _, i := range in.indexes {
			receipts[b.entries[i].ID] = stored[b.entries[i].key].result(b.entries[i]).Receipt
		}
	}
	positions := make([]int, len(r.steps))
	for i := range positions {
		positions[i] = i
	}
	if _, err := tx.Exec(ctx, sql.Text("submit_workflow_jobs"), postgres.UUID(r.id),
		postgres.Column(r.jobs, func(j job.Submission) pgtype.UUID { return postgres.UUID(j.ID) }),
		postgres.Column(positions, func(i int) int32 { return int32(i) }),
		postgres.Column(r.steps, func(s job.WorkflowStep) pgtype.Text { return postgres.Text(s.Name) }),
		postgres.Column(r.steps, func(s job.WorkflowStep) string { return string(s.OnDeath) }),
		postgres.Column(positions, r.missing),
		postgres.Column(r.steps, func(s job.WorkflowStep) pgtype.Timestamptz { return postgres.Instant(s.RunAt) }),
		postgres.Column(r.steps, func(s job.WorkflowStep) pgtype.Interval {
			return pgtype.Interval{Microseconds: s.Delay.Microseconds(), Valid: s.Delay != 0}
		}),
		postgres.Column(r.steps, func(s job.WorkflowStep) bool { return s.Hold })); err != nil {
		return nil, err
	}
	if edges := r.edges(); len(edges) > 0 {
		if _, err := tx.Exec(ctx, sql.Text("submit_workflow_edges"),
			postgres.Column(edges, func(e workflowEdge) pgtype.UUID { return postgres.UUID(e.after) }),
			postgres.Column(edges, func(e workflowEdge) pgtype.UUID { return postgres.UUID(e.id) }),
			postgres.Column(edges, func(e workflowEdge) int32 { return int32(e.position) })); err != nil {
			return nil, err
		}
	}
	ordered := make([]job.Receipt, len(r.jobs))
	for i, one := range r.jobs {
		ordered[i] = receipts[one.ID]
	}
	return ordered, nil
}

type workflowEdge struct {
	after, id job.ID
	position  int
}

func (r workflowRows) edges() (edges []workflowEdge) {
	for _, step := range r.steps {
		for position, before := range step.After {
			edges = append(edges, workflowEdge{after: r.steps[before].ID, id: step.ID, position: position})
		}
	}
	return edges
}

// workflowHash is the hash of what must be equal in two requests with the same key: the
// type, the payload, the name and the predecessors of each job, and what happens on a death.
func workflowHash(w job.WorkflowSubmission) []byte {
	hash := sha256.New()
	add := func(text string) {
		_ = binary.Write(hash, binary.BigEndian, int64(len(text)))
		_, _ = io.WriteString(hash, text)
	}
	step := func(s *job.Submission) {
		keyed := *s
		keyed.IdempotencyKey = "hashed"
		add(string(requestHash(&keyed)))
	}
	for i := range w.Jobs {
		step(&w.Jobs[i].Submission)
		add(w.Jobs[i].Name)
		add(string(w.Jobs[i].OnDeath))
		_ = binary.Write(hash, binary.BigEndian, int64(len(w.Jobs[i].After)))
		for _, before := range w.Jobs[i].After {
			_ = binary.Write(hash, binary.BigEndian, int64(before))
		}
	}
	if w.OnComplete != nil {
		step(w.OnComplete)
	}
	return hash.Sum(nil)
}
