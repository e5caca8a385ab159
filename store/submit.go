package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// mostInsertions is how often submissions are sent again that were neither stored nor kept
// out.
const mostInsertions = 20

// errNoHolder says that submissions could be neither stored nor kept out.
var errNoHolder = fmt.Errorf("submit: the job that has the place of a unique one cannot be found: %w", job.ErrUnavailable)

// Submit stores the jobs and returns a result for each, in the order given.
// Submissions are independent: one that cannot be stored does not affect the
// others. A submission whose idempotency key is known gets the receipt of the
// job that has it, and one that another keeps out the receipt of that one, as a
// duplicate. It is safe to submit the same id again: the job stays as it
// was first sent. Of several submissions with the same key, the first counts.
// The jobs are on disk on return, unless all of them are Fast.
func (s *Store) Submit(ctx context.Context, submissions []job.Submission) []job.Submitted {
	results := make([]job.Submitted, len(submissions))
	b := newBatch(submissions)
	for in := range insertions(b.entries, b.distinct) {
		s.submit(ctx, b.entries, in.indexes, results)
	}
	b.repeat(results)
	return results
}

// submit fills in the results at the indexes. It halves the batch as long as
// it contains a value that cannot be stored.
func (s *Store) submit(ctx context.Context, entries []entry, indexes []int, results []job.Submitted) {
	if len(indexes) == 0 {
		return
	}
	stored, err := s.insert(ctx, entries, indexes)
	if (errors.Is(err, job.ErrBadData) || idTaken(err)) && len(indexes) > 1 {
		half := len(indexes) / 2
		s.submit(ctx, entries, indexes[:half], results)
		s.submit(ctx, entries, indexes[half:], results)
		return
	}
	for _, i := range indexes {
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i] = stored[entries[i].key].result(entries[i])
	}
}

// insert runs the statement until its outcome is known. If the commit was not
// acknowledged, or an id already exists, it looks the ids up before it sends the other
// jobs again.
func (s *Store) insert(ctx context.Context, entries []entry, indexes []int) (map[key]submittedRow, error) {
	found := make(map[key]submittedRow)
	for missing := 0; len(indexes) > 0; {
		stored, err := s.insertOnce(ctx, newInsertion(entries, indexes))
		if err == nil && len(found) == 0 && len(stored) == len(indexes) {
			return stored, nil // as nearly always
		}
		if err == nil {
			maps.Copy(found, stored)
			indexes = without(stored, entries, indexes)
			if missing++; len(indexes) > 0 && missing > mostInsertions {
				return nil, errNoHolder
			}
			continue
		}
		unknown := errors.Is(err, job.ErrOutcomeUnknown)
		if !unknown && !idTaken(err) || ctx.Err() != nil {
			return nil, err
		}
		known, lookErr := s.submitted(ctx, entries, indexes)
		if lookErr != nil {
			return nil, stillUnknown(err, lookErr)
		}
		if len(known) == 0 && !unknown {
			return nil, err // the batch itself contains an id twice
		}
		indexes = slices.DeleteFunc(slices.Clone(indexes), func(i int) bool {
			row, ok := known[entries[i].ID]
			if ok {
				found[entries[i].key] = row
			}
			return ok
		})
	}
	return found, nil
}

// insertOnce runs an insertion in its own transaction. A fast commit does not
// wait for the disk. All statements are one transaction and one round trip. Entries
// without a row are to be inserted again.
func (s *Store) insertOnce(ctx context.Context, in insertion) (map[key]submittedRow, error) {
	columns, fast, unique := in.columns(), everyFast(in.entries), uniquesOf(in)
	return postgres.Write(ctx, s.db.Submissions, "submit", func(ctx context.Context, conn *pgx.Conn) (stored map[key]submittedRow, err error) {
		batch := &pgx.Batch{}
		if fast {
			batch.Queue(sql.Text("commit_fast"))
		}
		unique.before(batch)
		batch.Queue(sql.Text(in.statement()), columns...).Query(func(rows pgx.Rows) (err error) {
			stored, err = in.stored(rows)
			return err
		})
		var keptOut []keptOutRow
		unique.after(batch, &keptOut)
		// Close returns the error of the commit, which comes after the rows.
		err = conn.SendBatch(ctx, batch).Close()
		unique.complete(stored, keptOut)
		return stored, err
	})
}

// SubmitAll stores all of the jobs, or none of them if any result has an error, which
// is job.ErrKeyReused. A result without an error then only means that this job was not
// the cause. A job that was found by its key, or that keeps this one out, counts as
// stored. The results are in the
// order given. It is safe to submit the same ids again. Of several submissions with
// the same key, the first counts. The jobs are on disk on return, unless all of them
// are Fast.
func (s *Store) SubmitAll(ctx context.Context, submissions []job.Submission) ([]job.Submitted, error) {
	b := newBatch(submissions)
	results := make([]job.Submitted, len(submissions))
	for i, e := range b.entries {
		if !bytes.Equal(e.hash, b.entries[b.firstOf(i)].hash) {
			results[i].Err = job.ErrKeyReused
		}
	}
	if refused(slices.Values(results)) {
		return results, nil
	}
	for missing := 0; ; {
		inserted, err := s.insertAll(ctx, b)
		switch {
		case err == nil && inserted.count < len(b.distinct):
			if missing++; missing > mostInsertions {
				return nil, errNoHolder
			}
			continue
		case err == nil:
			for _, i := range b.distinct {
				results[i] = inserted.results[i]
			}
			if !refused(slices.Values(results)) {
				b.repeat(results)
			}
			return results, nil
		case errors.Is(err, job.ErrBadData), postgres.Answered(err) && !idTaken(err), ctx.Err() != nil:
			return nil, err
		}
		// The commit or its answer may be lost. The commit can also take effect after the
		// next look, and then the ids conflict.
		stored, lookErr := s.submitted(ctx, b.entries, b.distinct)
		if lookErr != nil {
			return nil, stillUnknown(err, lookErr)
		}
		if len(stored) == 0 && postgres.Answered(err) {
			return nil, err // the batch itself contains an id twice
		}
		b.take(stored, results)
	}
}

// insertedAll is what became of the distinct submissions of a batch: their results, at their
// indexes, and how many have one.
type insertedAll struct {
	results []job.Submitted
	count   int
}

// insertAll inserts the distinct submissions in one transaction. If one of them is refused, it
// rolls back; that is no error. It also rolls back if there are fewer results than submissions:
// all of them are to be inserted again.
func (s *Store) insertAll(ctx context.Context, b batch) (insertedAll, error) {
	fast := !slices.ContainsFunc(b.distinct, func(i int) bool { return !b.entries[i].Fast })
	if b.inOneGo() {
		return s.insertInOneGo(ctx, b, fast)
	}
	return postgres.Write(ctx, s.db.Submissions, "submit all", func(ctx context.Context, conn *pgx.Conn) (done insertedAll, err error) {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return done, err
		}
		defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
		if fast {
			if _, err := tx.Exec(ctx, sql.Text("commit_fast")); err != nil {
				return done, err
			}
		}
		found, err := b.insert(ctx, tx)
		if err != nil {
			return done, err
		}
		done = insertedAll{results: make([]job.Submitted, len(b.entries)), count: len(found)}
		none := refused(maps.Values(found))
		for i, result := range found {
			if none {
				result.Receipt = job.Receipt{} // nothing is stored
			}
			done.results[i] = result
		}
		if none || done.count < len(b.distinct) {
			return done, nil
		}
		return done, tx.Commit(ctx)
	})
}

// insertInOneGo stores the distinct submissions as one pipeline, which the server runs as one
// transaction.
func (s *Store) insertInOneGo(ctx context.Context, b batch, fast bool) (insertedAll, error) {
	all := slices.Collect(insertions(b.entries, b.distinct))
	return postgres.Write(ctx, s.db.Submissions, "submit all", func(ctx context.Context, conn *pgx.Conn) (insertedAll, error) {
		done, pipeline := insertedAll{results: make([]job.Submitted, len(b.entries))}, &pgx.Batch{}
		if fast {
			pipeline.Queue(sql.Text("commit_fast"))
		}
		for _, in := range all {
			pipeline.Queue(sql.Text(in.statement()), in.columns()...).Query(func(rows pgx.Rows) error {
				receipts, err := in.accepted(rows)
				for i, receipt := range receipts {
					done.results[in.indexes[i]].Receipt = receipt
				}
				done.count += len(receipts)
				return err
			})
		}
		err := conn.SendBatch(ctx, pipeline).Close()
		return done, err
	})
}

// insert inserts the distinct submissions, and returns their results by index. One without
// a result was neither stored nor kept out.
func (b batch) insert(ctx context.Context, tx pgx.Tx) (map[int]job.Submitted, error) {
	all := slices.Collect(insertions(b.entries, b.distinct))
	unique := uniquesOf(all...)
	if err := unique.claim(ctx, tx); err != nil {
		return nil, err
	}
	stored := make(map[key]submittedRow, len(b.distinct))
	for _, in := range all {
		rows, err := tx.Query(ctx, sql.Text(in.statement()), in.columns()...)
		if err != nil {
			return nil, err
		}
		inserted, err := in.stored(rows)
		if err != nil {
			return nil, err
		}
		maps.Copy(stored, inserted)
	}
	if err := unique.settle(ctx, tx, stored); err != nil {
		return nil, err
	}
	results := make(map[int]job.Submitted, len(b.distinct))
	for _, i := range b.distinct {
		if row, ok := stored[b.entries[i].key]; ok {
			results[i] = row.result(b.entries[i])
		}
	}
	return results, nil
}

// without returns the indexes of the entries that have no row.
func without(stored map[key]submittedRow, entries []entry, indexes []int) (left []int) {
	for _, i := range indexes {
		if _, ok := stored[entries[i].key]; !ok {
			left = append(left, i)
		}
	}
	return left
}

// submitted returns the entries whose ids are already jobs. Unless they are Fast, it
// waits until the standby has them: a visible job is committed, but perhaps only on
// the primary.
func (s *Store) submitted(ctx context.Context, entries []entry, indexes []int) (map[job.ID]submittedRow, error) {
	in := newInsertion(entries, indexes)
	ids := postgres.Column(in.entries, func(e entry) pgtype.UUID { return postgres.UUID(e.ID) })
	var found []submittedRow
	var err error
	if everyFast(in.entries) {
		found, err = postgres.Read(ctx, s.db.Submissions, "submitted", pgx.RowToStructByName[submittedRow], ids)
	} else {
		found, err = postgres.Confirm(ctx, s.db.Submissions, "submitted", pgx.RowToStructByName[submittedRow], ids)
	}
	stored := make(map[job.ID]submittedRow, len(found))
	for _, row := range found {
		stored[row.JobID] = row
	}
	return stored, err
}

// Known reports whether the submission's key has already created a job of the
// same type and payload.
func (s *Store) Known(ctx context.Context, submission job.Submission) (bool, error) {
	found, err := postgres.Read(ctx, s.db.Submissions, "known", pgx.RowTo[[]byte], submission.Tenant, submission.IdempotencyKey)
	return len(found) > 0 && sameRequest(found[0], requestHash(&submission)), err
}

// stillUnknown is the error of a write whose outcome could not be looked up. first is
// the error of the write.
func stillUnknown(first, lookErr error) error {
	return fmt.Errorf("submit: %w (first: %s)", postgres.Unknown(lookErr), first.Error())
}

// everyFast reports whether all submissions are Fast, so that no answer waits for the
// disk.
func everyFast(entries []entry) bool {
	return !slices.ContainsFunc(entries, func(e entry) bool { return !e.Fast })
}

func refused(results iter.Seq[job.Submitted]) bool {
	for result := range results {
		if result.Err != nil {
			return true
		}
	}
	return false
}

// idTaken reports whether the error says that a new id already belongs to a job.
func idTaken(err error) bool {
	const uniqueViolation = "23505"
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == uniqueViolation && answer.ConstraintName == "jobs_pkey"
}
