package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// followUpRows bounds how many follow-ups are inserted in one transaction; those of one
// attempt may be more.
const followUpRows = 2000

// SettleWithFollowUps settles successes together with their follow-ups, and returns the result
// of each, in the order given, and what became of its follow-ups. In one transaction, it
// ends the attempts whose leases are held, and inserts the follow-ups of these, and of no
// others. So there is one set of follow-ups for each success, however often the settlement
// is sent and however many send it. A follow-up whose idempotency key is known, or that
// another job keeps out, counts as inserted.
//
// Follow-ups are nil if an earlier try has inserted them. A settlement is Refused if one of
// its follow-ups has the error job.ErrKeyReused, or if a value in it cannot be stored; its
// lease is still held then. Errors are those of Settle.
func (s *Store) SettleWithFollowUps(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, [][]job.Submitted, error) {
	results, submitted := make([]job.SettleResult, len(batch)), make([][]job.Submitted, len(batch))
	indexes := make([]int, len(batch))
	for i := range batch {
		if indexes[i] = i; batch[i].To != job.Succeeded {
			return nil, nil, fmt.Errorf("settle with follow-ups: the job becomes %s", batch[i].To)
		}
	}
	slices.SortFunc(indexes, func(a, b int) int { return bytes.Compare(batch[a].JobID[:], batch[b].JobID[:]) })
	for len(indexes) > 0 {
		n := fitting(batch, indexes)
		if err := s.settleParents(ctx, batch, indexes[:n], results, submitted); err != nil {
			return nil, nil, err
		}
		indexes = indexes[n:]
	}
	return results, submitted, nil
}

// fitting returns how many of the settlements fit into one transaction: at least one.
func fitting(batch []job.Settlement, indexes []int) int {
	rows, size := 0, 0
	for n, i := range indexes {
		rows += len(batch[i].FollowUps)
		for _, one := range batch[i].FollowUps {
			size += len(one.Payload)
		}
		if n > 0 && (rows > followUpRows || size > insertBytes) {
			return n
		}
	}
	return len(indexes)
}

// settleParents writes the settlements at the indexes in one transaction. If it contains a
// value that cannot be stored, it halves them. If a follow-up is refused, it writes those
// without the refusal, and then each of the others alone: perhaps one was refused because of
// another.
func (s *Store) settleParents(
	ctx context.Context, batch []job.Settlement, indexes []int, results []job.SettleResult, submitted [][]job.Submitted,
) error {
	if len(indexes) == 0 {
		return nil
	}
	part, leases := make([]*job.Settlement, len(indexes)), make([]job.Lease, len(indexes))
	for i, index := range indexes {
		part[i], leases[i] = &batch[index], batch[index].Lease
	}
	divided := func(parts ...[]int) error {
		for _, part := range parts {
			if err := s.settleParents(ctx, batch, part, results, submitted); err != nil {
				return err
			}
		}
		return nil
	}
	done, err := s.settleTogether(ctx, part)
	switch {
	case errors.Is(err, job.ErrBadData) && len(indexes) == 1:
		results[indexes[0]] = job.Refused
		return nil
	case errors.Is(err, job.ErrBadData):
		half := len(indexes) / 2
		return divided(indexes[:half], indexes[half:])
	case err != nil:
		return err
	}
	var accepted []int
	var suspects [][]int
	for i, index := range indexes {
		if submitted[index] = done.submitted[i]; refused(slices.Values(done.submitted[i])) {
			suspects = append(suspects, indexes[i:i+1])
		} else {
			accepted = append(accepted, index)
		}
	}
	switch {
	case len(suspects) == 0:
		return s.explain(ctx, done.leases, leases, indexes, results)
	case len(indexes) == 1:
		results[indexes[0]] = job.Refused
		return nil
	}
	return divided(append(suspects, accepted)...)
}

// settledTogether is what a transaction did. Nothing was written if any of submitted has an
// error.
type settledTogether struct {
	leases    map[[16]byte]struct{} // that were held
	submitted [][]job.Submitted     // by settlement; nil for one whose lease was not held
}

// settleTogether writes the settlements, which are in the order of their jobs, and the
// follow-ups of those whose leases are held. It tries again as long as a follow-up could be
// neither inserted nor kept out.
//
// The attempts end first: a follow-up may have the idempotency key of the job that submits
// it, and is then a replay, or be unique while that job is open, which it no longer is.
func (s *Store) settleTogether(ctx context.Context, part []*job.Settlement) (done settledTogether, err error) {
	for range mostInsertions {
		if done, err = s.settleOnce(ctx, part); !errors.Is(err, errNoHolder) {
			break
		}
	}
	return done, err
}

func (s *Store) settleOnce(ctx context.Context, part []*job.Settlement) (settledTogether, error) {
	return postgres.Write(ctx, s.db.Worker, "settle with follow-ups", func(ctx context.Context, conn *pgx.Conn) (settledTogether, error) {
		done := settledTogether{leases: make(map[[16]byte]struct{}, len(part)), submitted: make([][]job.Submitted, len(part))}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return done, err
		}
		defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
		rows, err := tx.Query(ctx, sql.Text("succeed_gated"), succeedColumns(part)...)
		if err != nil {
			return done, err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if err != nil {
			return done, err
		}
		for _, id := range ids {
			done.leases[id] = struct{}{}
		}
		var children []job.Submission
		for _, settlement := range part {
			if _, held := done.leases[settlement.Lease.ID]; held {
				children = append(children, settlement.FollowUps...)
			}
		}
		submitted, err := insertFollowUps(ctx, tx, children)
		if err != nil {
			return done, err
		}
		for i, settlement := range part {
			if _, held := done.leases[settlement.Lease.ID]; held {
				n := len(settlement.FollowUps)
				done.submitted[i], submitted = submitted[:n:n], submitted[n:]
			}
		}
		for _, of := range done.submitted {
			if refused(slices.Values(of)) {
				return done, nil
			}
		}
		return done, tx.Commit(ctx)
	})
}

// insertFollowUps inserts the submissions and returns a result for each, in the order
// given.
func insertFollowUps(ctx context.Context, tx pgx.Tx, children []job.Submission) ([]job.Submitted, error) {
	b := newBatch(children)
	inserted, err := b.insert(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(inserted) < len(b.distinct) {
		return nil, errNoHolder
	}
	results := make([]job.Submitted, len(children))
	for i, result := range inserted {
		results[i] = result
	}
	b.repeat(results)
	return results, nil
}
