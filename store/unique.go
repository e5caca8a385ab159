package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// uniques are the submissions of a transaction that must be unique, in the order in which
// they were given: of several that exclude each other, the first counts.
//
// The transaction first claims all their digests, and only then inserts jobs: of the
// submissions that have got theirs. Afterwards it gives up digests that it has claimed for
// jobs that it did not make, and looks up who keeps the others out.
type uniques []entry

func uniquesOf(insertions ...insertion) uniques {
	type place struct {
		index int
		entry
	}
	var found []place
	for _, in := range insertions {
		for i, e := range in.entries {
			if e.Unique != nil {
				found = append(found, place{in.indexes[i], e})
			}
		}
	}
	slices.SortFunc(found, func(a, b place) int { return cmp.Compare(a.index, b.index) })
	all := make(uniques, len(found))
	for i, p := range found {
		all[i] = p.entry
	}
	return all
}

// before are the statements that come before the insertions.
func (u uniques) before(batch *pgx.Batch) {
	if len(u) > 0 {
		batch.Queue(sql.Text("claim_unique"), append(u.digests(),
			postgres.Column(u, func(e entry) pgtype.Interval {
				return pgtype.Interval{Microseconds: e.Unique.For.Microseconds(), Valid: !e.Unique.WhileOpen}
			}),
			postgres.Column(u, func(e entry) string { return e.Tenant }),
			postgres.Column(u, func(e entry) pgtype.Text { return postgres.Text(e.IdempotencyKey) }))...)
	}
}

// after are the statements that come after the insertions. What they find is in found when
// the batch is done.
func (u uniques) after(batch *pgx.Batch, found *[]keptOutRow) {
	keyed := slices.DeleteFunc(slices.Clone(u), func(e entry) bool { return e.IdempotencyKey == "" })
	if len(keyed) > 0 {
		batch.Queue(sql.Text("unclaim_unique"), keyed.digests()...)
	}
	if len(u) > 0 {
		postgres.QueueRows(batch, found, "kept_out", pgx.RowToStructByName[keptOutRow], u.digests()...)
	}
}

// claim is before, by itself.
func (u uniques) claim(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	u.before(batch)
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

// settle is after and complete, by themselves.
func (u uniques) settle(ctx context.Context, tx pgx.Tx, stored map[key]submittedRow) error {
	batch := &pgx.Batch{}
	var keptOut []keptOutRow
	u.after(batch, &keptOut)
	if batch.Len() == 0 {
		return nil
	}
	err := tx.SendBatch(ctx, batch).Close()
	u.complete(stored, keptOut)
	return err
}

func (u uniques) digests() []any {
	return []any{
		postgres.Column(u, func(e entry) []byte { return e.Unique.Digest[:] }),
		postgres.Column(u, func(e entry) pgtype.UUID { return postgres.UUID(e.ID) }),
	}
}

// complete adds the submissions that were kept out to the stored ones.
func (u uniques) complete(stored map[key]submittedRow, found []keptOutRow) {
	by := make(map[job.ID]keptOutRow, len(found))
	for _, row := range found {
		by[row.SubmittedID] = row
	}
	for _, e := range u {
		row, keptOut := by[e.ID]
		if _, made := stored[e.key]; made || !keptOut {
			continue // or its job was about to be made, and was not: try again
		}
		stored[e.key] = submittedRow{
			JobID: row.JobID, JobType: row.JobType, RequestHash: e.hash, State: row.State,
			CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, duplicate: true,
		}
	}
}

// digest is nil for a submission that need not be unique.
func digest(u *job.Unique) []byte {
	if u == nil {
		return nil
	}
	return u.Digest[:]
}

// keptOutRow is the job that keeps a submission out.
type keptOutRow struct {
	SubmittedID job.ID
	JobID       job.ID
	JobType     string
	State       job.State
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// TidyUnique looks at up to limit keys of unique jobs after the one given, and at as many
// whose time is over, and deletes those that keep nobody out any more. It returns where
// to go on, nil for the beginning, and how many it has deleted. Any number of processes
// may call it: one works at a time, and the others return at once.
func (s *Store) TidyUnique(ctx context.Context, after []byte, limit int) (next []byte, deleted int, err error) {
	type row struct {
		After   []byte
		Deleted int
	}
	if after == nil {
		after = []byte{}
	}
	done, err := postgres.Change(ctx, s.db.Worker, "tidy_unique", pgx.RowToStructByName[row], after, limit)
	if err != nil || len(done) == 0 {
		return nil, 0, err
	}
	return done[0].After, done[0].Deleted, nil
}
