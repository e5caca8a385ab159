package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Submit stores the jobs and returns what became of each, in the order given.
// Submissions are independent: one that cannot be stored does not keep the
// others out. A submission whose idempotency key is known gets the receipt of
// the job that has it. Submitting the same id again is safe: the job stays as it was sent first. The jobs are on
// disk on return, unless every one of them is Fast; of several with one key the
// first counts.
func (s *Store) Submit(ctx context.Context, batch []job.Submission) []job.Submitted {
	results := make([]job.Submitted, len(batch))
	set := newSubmissionSet(batch)
	for places := range portions(set.entries, set.distinct) {
		s.submitDistinct(ctx, set.entries, places, results)
	}
	set.repeat(results)
	return results
}

// submitDistinct fills in results at the places named, halving the batch as
// long as some value in it cannot be stored.
func (s *Store) submitDistinct(ctx context.Context, entries []entry, places []int, results []job.Submitted) {
	if len(places) == 0 {
		return
	}
	rows, err := s.insert(ctx, entries, places)
	if err != nil {
		err = translate("submit", err)
		twice := idTaken(err)
		if (errors.Is(err, job.ErrBadData) || twice) && len(places) > 1 {
			half := len(places) / 2
			s.submitDistinct(ctx, entries, places[:half], results)
			s.submitDistinct(ctx, entries, places[half:], results)
			return
		}
		for _, place := range places {
			results[place].Err = err
		}
		return
	}
	for _, place := range places {
		row := rows[entries[place].key]
		results[place] = row.answer(entries[place])
	}
}

// insert runs the statement until its outcome is known. A batch whose commit
// was not acknowledged, or that has an id which is a job already, is looked up
// by its ids before it is sent again.
func (s *Store) insert(ctx context.Context, entries []entry, places []int) (map[key]submittedRow, error) {
	found := make(map[key]submittedRow, len(places))
	for {
		rows, err := s.run(ctx, newInsertion(entries, places), everyFast(entries, places))
		if err == nil {
			for _, row := range rows {
				found[row.key()] = row
			}
			return found, nil
		}
		switch {
		case worthAnotherTry(err):
			continue
		case !outcomeUnknown(err) && !idTaken(err):
			return nil, err
		case ctx.Err() != nil:
			return nil, err
		}
		ids := column(places, func(place int) pgtype.UUID { return uuid(entries[place].ID) })
		rows, readErr := s.submitted(ctx, ids, everyFast(entries, places))
		if readErr != nil {
			return nil, unknownBatch(err, readErr)
		}
		stored := make(map[job.ID]submittedRow, len(rows))
		for _, row := range rows {
			stored[row.JobID] = row
		}
		if len(stored) == 0 && !outcomeUnknown(err) {
			return nil, err // the batch itself has an id twice
		}
		places = slices.DeleteFunc(slices.Clone(places), func(place int) bool {
			row, ok := stored[entries[place].ID]
			if ok {
				found[entries[place].key] = row
			}
			return ok
		})
		if len(places) == 0 {
			return found, nil
		}
	}
}

// unknownBatch is the error of a batch that could not be looked up after it had come
// to err, which says nothing final about it.
func unknownBatch(err, readErr error) error {
	return fmt.Errorf("%w (first: %s)", unknown(readErr), err.Error())
}

// Known reports whether the submission's key has made a job of the same type
// and payload before. It may have by the time that this is read.
func (s *Store) Known(ctx context.Context, submission job.Submission) (bool, error) {
	var hash []byte
	err := s.submissions.QueryRow(ctx, knownSQL, submission.Tenant, submission.IdempotencyKey).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return bytes.Equal(hash, requestHash(submission)), translate("known", err)
}

// submitted returns those of the ids that are jobs, and unless they are fast waits
// until the standby has them: one that is seen was committed, but perhaps on the
// primary alone.
func (s *Store) submitted(ctx context.Context, ids pgtype.ArrayGetter, fast bool) ([]submittedRow, error) {
	if fast {
		rows, err := s.submissions.Query(ctx, submittedSQL, ids)
		if err != nil {
			return nil, err
		}
		return submittedRows(rows)
	}
	return confirmed(ctx, s, s.submissions, pgx.RowToStructByName[submittedRow], submittedSQL, ids)
}

func submittedRows(rows pgx.Rows) ([]submittedRow, error) {
	return pgx.CollectRows(rows, pgx.RowToStructByName[submittedRow])
}

// run runs an insertion in a transaction of its own. A fast commit does not wait
// for the disk: both statements are one transaction and one round trip.
func (s *Store) run(ctx context.Context, i insertion, fast bool) ([]submittedRow, error) {
	columns := i.columns()
	return write(ctx, s, s.submissions, func(ctx context.Context, conn *pgx.Conn) (stored []submittedRow, err error) {
		batch := &pgx.Batch{}
		if fast {
			batch.Queue(commitFastSQL)
		}
		batch.Queue(i.sql(), columns...).Query(func(rows pgx.Rows) (err error) {
			stored, err = i.stored(rows)
			return err
		})
		// Close tells of the commit, which comes after the rows.
		err = conn.SendBatch(ctx, batch).Close()
		return stored, err
	})
}

// everyFast reports whether nobody's answer waits for the disk.
func everyFast(entries []entry, places []int) bool {
	return !slices.ContainsFunc(places, func(place int) bool { return !entries[place].Fast })
}

// key names a job before it exists: by tenant and idempotency key, or by its
// id where it has no key.
type key struct {
	tenant, idempotency string
	id                  job.ID
}

func (k key) compare(other key) int {
	return cmp.Or(
		cmp.Compare(k.tenant, other.tenant),
		cmp.Compare(k.idempotency, other.idempotency),
		bytes.Compare(k.id[:], other.id[:]),
	)
}

func newKey(tenant, idempotency string, id job.ID) key {
	if idempotency == "" {
		return key{id: id}
	}
	return key{tenant: tenant, idempotency: idempotency}
}

// entry is a submission with what identifies it.
type entry struct {
	job.Submission
	key  key
	hash []byte
}

func newEntry(s job.Submission) entry {
	return entry{Submission: s, key: newKey(s.Tenant, s.IdempotencyKey, s.ID), hash: requestHash(s)}
}

// requestHash covers what makes two requests with one idempotency key the same: the
// type and the payload without insignificant white space. It is empty without a key.
func requestHash(s job.Submission) []byte {
	if s.IdempotencyKey == "" {
		return []byte{}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, s.Payload); err != nil {
		compact.Reset() // not JSON: the database will refuse it
		compact.Write(s.Payload)
	}
	hash := sha256.New()
	hash.Write([]byte(s.Type))
	hash.Write([]byte{0})
	hash.Write(compact.Bytes())
	return hash.Sum(nil)
}

type submittedRow struct {
	JobID          [16]byte
	Tenant         string
	IdempotencyKey string
	JobType        string
	RequestHash    []byte
	State          string
	CreatedAt      time.Time
	UpdatedAt      time.Time
	Fresh          bool
}

func (r submittedRow) key() key { return newKey(r.Tenant, r.IdempotencyKey, r.JobID) }

func (r submittedRow) answer(e entry) job.Submitted {
	if !bytes.Equal(r.RequestHash, e.hash) {
		return job.Submitted{Err: job.ErrKeyReused}
	}
	return job.Submitted{Receipt: job.Receipt{
		ID: r.JobID, Type: r.JobType, State: job.State(r.State),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Replayed: !r.Fresh && r.JobID != e.ID,
	}}
}
