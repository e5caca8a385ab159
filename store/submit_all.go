package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// insertAtMost bounds the rows of one insert of a transaction.
const insertAtMost = 500

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
	if refused(results) {
		return results, nil
	}
	for {
		err := s.insertAll(ctx, set, results)
		switch {
		case err == nil:
			if !refused(results) {
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
		// The commit may have been lost, or its answer: pgx 5.12 says "conn
		// closed" of a COMMIT that got none, as if it had not been sent. It can
		// also arrive after the next look, and is then in the way.
		stored, readErr := s.submitted(ctx, set.ids())
		if readErr != nil {
			return nil, translate("submit all", unknown(err, readErr))
		}
		if len(stored) == 0 && answered(err) {
			return nil, translate("submit all", err) // the batch itself has an id twice
		}
		set.settle(stored, results)
	}
}

// insertAll inserts in one transaction and fills in the results of the
// distinct submissions that are not settled. When one of them is refused, the transaction is
// rolled back and that is no error.
func (s *Store) insertAll(ctx context.Context, set submissionSet, results []job.Submitted) error {
	tx, err := s.submissions.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // does nothing after a commit
	if everyFast(set.entries, set.distinct) {
		if _, err := tx.Exec(ctx, commitFastSQL); err != nil {
			return err
		}
	}
	for rest := set.distinct; len(rest) > 0; {
		places := rest[:min(len(rest), insertAtMost)]
		rest = rest[len(places):]
		insertion := newInsertion(set.entries, places)
		rows, err := tx.Query(ctx, insertion.sql(), insertion.columns()...)
		if err != nil {
			return err
		}
		inserted, err := insertion.stored(rows)
		if err != nil {
			return err
		}
		byKey := make(map[key]submittedRow, len(inserted))
		for _, row := range inserted {
			byKey[row.key()] = row
		}
		for _, place := range places {
			results[place] = byKey[set.entries[place].key].answer(set.entries[place])
		}
	}
	if refused(results) {
		forget(results)
		return nil
	}
	return tx.Commit(ctx)
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
	for ; len(places) > 0; places = places[min(len(places), insertAtMost):] {
		insertion := newInsertion(set.entries, places[:min(len(places), insertAtMost)])
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

func refused(results []job.Submitted) bool {
	for _, result := range results {
		if result.Err != nil {
			return true
		}
	}
	return false
}
