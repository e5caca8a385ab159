package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// SubmitAll stores all of the jobs, or none of them: none when any of the
// results has an error. What a key found counts as stored. The results are in
// the order given; where nothing was stored, those without an error say no
// more than that it was not their fault. Submitting the same ids again is safe.
// The jobs are on disk on return, unless every one of them is Fast; of several
// with one key the first counts.
func (s *Store) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	set := newSubmissionSet(batch)
	results := make([]job.Submitted, len(batch))
	for place, e := range set.entries {
		if !bytes.Equal(e.hash, set.entries[set.first[e.key]].hash) {
			results[place].Err = job.ErrKeyReused
		}
	}
	if refused(slices.Values(results)) {
		return results, nil
	}
	for {
		inserted, err := s.insertAll(ctx, set)
		switch {
		case err == nil:
			for place, result := range inserted {
				results[place] = result
			}
			if !refused(slices.Values(results)) {
				set.repeat(results)
			}
			return results, nil
		case worthAnotherTry(err):
			continue
		case errors.Is(translate("", err), job.ErrBadData):
			forget(results)
			return results, s.findBad(ctx, set, set.distinct, results)
		case answered(err) && !idTaken(err) || ctx.Err() != nil:
			return nil, translate("submit all", err)
		}
		// The commit may have been lost, or its answer. It can also arrive after
		// the next look, and is then in the way.
		stored, readErr := s.submitted(ctx, set.ids(), everyFast(set.entries, set.distinct))
		if readErr != nil {
			return nil, translate("submit all", unknownBatch(err, readErr))
		}
		if len(stored) == 0 && answered(err) {
			return nil, translate("submit all", err) // the batch itself has an id twice
		}
		set.settle(stored, results)
	}
}

// insertAll inserts in one transaction and returns the results of the distinct
// submissions that are not settled, by their places. When one of them is refused, the
// transaction is rolled back and that is no error.
func (s *Store) insertAll(ctx context.Context, set submissionSet) (map[int]job.Submitted, error) {
	inserts := newInserts(set)
	fast := everyFast(set.entries, set.distinct)
	return write(ctx, s, s.submissions, func(ctx context.Context, conn *pgx.Conn) (map[int]job.Submitted, error) {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
		if fast {
			if _, err := tx.Exec(ctx, commitFastSQL); err != nil {
				return nil, err
			}
		}
		results := make(map[int]job.Submitted)
		for _, one := range inserts {
			if err := one.run(ctx, tx, results); err != nil {
				return nil, err
			}
		}
		if refused(maps.Values(results)) {
			for place, result := range results {
				results[place] = job.Submitted{Err: result.Err} // nothing is stored
			}
			return results, nil
		}
		return results, tx.Commit(ctx)
	})
}

// insert is one of the statements of a transaction.
type insert struct {
	insertion
	places []int
}

func newInserts(set submissionSet) []insert {
	var inserts []insert
	for places := range portions(set.entries, set.distinct) {
		inserts = append(inserts, insert{insertion: newInsertion(set.entries, places), places: slices.Clone(places)})
	}
	return inserts
}

func (i insert) run(ctx context.Context, tx pgx.Tx, results map[int]job.Submitted) error {
	rows, err := tx.Query(ctx, i.sql(), i.columns()...)
	if err != nil {
		return err
	}
	stored, err := i.stored(rows)
	if err != nil {
		return err
	}
	byKey := make(map[key]submittedRow, len(stored))
	for _, row := range stored {
		byKey[row.key()] = row
	}
	for at, place := range i.places {
		results[place] = byKey[i.entries[at].key].answer(i.entries[at])
	}
	return nil
}

// findBad marks the submissions that the database cannot store, by halving.
// It stores nothing.
func (s *Store) findBad(ctx context.Context, set submissionSet, places []int, results []job.Submitted) error {
	err := s.probe(ctx, set, places)
	switch {
	case err == nil:
		return nil
	case worthAnotherTry(err):
		return s.findBad(ctx, set, places, results)
	case !errors.Is(translate("", err), job.ErrBadData):
		return translate("submit all", err)
	case len(places) == 1:
		results[places[0]] = job.Submitted{Err: translate("submit all", err)}
		return nil
	}
	half := len(places) / 2
	if err := s.findBad(ctx, set, places[:half], results); err != nil {
		return err
	}
	return s.findBad(ctx, set, places[half:], results)
}

// probe inserts and takes it back.
func (s *Store) probe(ctx context.Context, set submissionSet, places []int) error {
	tx, err := s.submissions.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for portion := range portions(set.entries, places) {
		insertion := newInsertion(set.entries, portion)
		if _, err := tx.Exec(ctx, insertion.sql(), insertion.columns()...); err != nil {
			return err
		}
	}
	return nil
}

// forget clears what was answered for submissions that are not stored.
func forget(results []job.Submitted) {
	for i := range results {
		results[i].Receipt = job.Receipt{}
	}
}

func refused(results iter.Seq[job.Submitted]) bool {
	for result := range results {
		if result.Err != nil {
			return true
		}
	}
	return false
}
