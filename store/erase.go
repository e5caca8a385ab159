package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// eraseTimes is how often erase.sql runs for a job: see its header.
const eraseTimes = 2

// Erase blanks an ended job, and writes down who did it and why. It is no error to erase a
// job again. If the job has not ended, the error is job.ErrWrongState.
func (s *Store) Erase(ctx context.Context, id job.ID, by, reason string) (job.View, error) {
	type result struct {
		erased []job.State // of the last of them
		found  []viewRow
	}
	done, err := postgres.Write(ctx, s.db.Submissions, "erase", func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
		batch := &pgx.Batch{}
		for range eraseTimes {
			postgres.QueueRows(batch, &done.erased, "erase", pgx.RowTo[job.State], []pgtype.UUID{postgres.UUID(id)}, by, reason)
		}
		postgres.QueueRows(batch, &done.found, "get", pgx.RowToStructByNameLax[viewRow], postgres.UUID(id))
		postgres.QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return done, err
	})
	switch {
	case err != nil:
		return job.View{}, err
	case len(done.found) == 0:
		return job.View{}, postgres.Translate("erase", pgx.ErrNoRows)
	}
	view := done.found[0].view()
	if view.ErasedAt == nil {
		return job.View{}, fmt.Errorf("erase a job that is %s: %w", view.State, job.ErrWrongState)
	}
	return view, nil
}

// AskErasure asks for the erasure of all ended jobs of a tenant, and writes down who asked
// and why. The same id sent again makes one erasure.
func (s *Store) AskErasure(ctx context.Context, asked job.Erasure) (job.Erasure, error) {
	found, err := postgres.Write(ctx, s.db.Submissions, "ask erasure", func(ctx context.Context, conn *pgx.Conn) (found []job.Erasure, err error) {
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("ask_erasure"), postgres.UUID(asked.ID), asked.Tenant, asked.By, asked.Reason)
		postgres.QueueRows(batch, &found, "erasures", pgx.RowToStructByName[job.Erasure], postgres.UUID(asked.ID), "", 1)
		postgres.QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return found, err
	})
	if err != nil {
		return job.Erasure{}, err
	}
	return found[0], nil
}

// Erasures returns the erasures that the filter selects, newest first.
func (s *Store) Erasures(ctx context.Context, filter job.ErasureFilter) ([]job.Erasure, error) {
	only := pgtype.UUID{Bytes: filter.ID, Valid: filter.ID != job.ID{}}
	return postgres.Read(ctx, s.listsOf(only.Valid), "erasures", pgx.RowToStructByName[job.Erasure], only, filter.Tenant, filter.Limit)
}

// nextErasure is an erasure that somebody works on.
type nextErasure struct {
	ID      job.ID
	Tenant  string
	After   job.ID
	AskedAt time.Time
}

// tenantsJob is a job that an erasure looks at.
type tenantsJob struct {
	JobID job.ID
	Ended bool
	Asked bool
}

// EraseNext looks at up to limit further jobs of the oldest erasure that is not finished and
// that nobody works on, and blanks those that have ended. It counts what it has blanked by
// state, and returns false if there is no such erasure. All of it is one transaction with the
// erasure's progress.
func (s *Store) EraseNext(ctx context.Context, limit int) (erased map[job.State]int64, more bool, err error) {
	type result struct {
		erased map[job.State]int64
		found  bool
	}
	done, err := postgres.Write(ctx, s.db.Worker, "erase next", func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			next, err := postgres.Rows(ctx, tx, "next_erasure", pgx.RowToStructByName[nextErasure])
			if err != nil || len(next) == 0 {
				return err
			}
			done.found = true
			done.erased, err = eraseNext(ctx, tx, next[0], limit)
			return err
		})
		return done, err
	})
	return done.erased, done.found, err
}

func eraseNext(ctx context.Context, tx pgx.Tx, e nextErasure, limit int) (map[job.State]int64, error) {
	before := postgres.UUID(firstID(e.AskedAt.Add(clockSlack)))
	var found []tenantsJob
	var err error
	if e.Tenant == job.DefaultTenant {
		found, err = postgres.Rows(ctx, tx, "default_tenants_jobs", pgx.RowToStructByName[tenantsJob], e.Tenant, postgres.UUID(e.After), before, limit, e.AskedAt)
	} else {
		found, err = postgres.Rows(ctx, tx, "tenants_jobs", pgx.RowToStructByName[tenantsJob], e.Tenant, postgres.UUID(e.After), before, limit, e.AskedAt)
	}
	if err != nil {
		return nil, err
	}
	last, open := e.After, 0
	var ended []job.ID
	for _, j := range found {
		last = j.JobID
		switch {
		case !j.Asked:
		case j.Ended:
			ended = append(ended, j.JobID)
		default:
			open++
		}
	}
	erased := make(map[job.State]int64)
	for range eraseTimes {
		if len(ended) == 0 {
			break
		}
		rows, err := tx.Query(ctx, sql.Text("erase"), postgres.Column(ended, func(id job.ID) pgtype.UUID { return postgres.UUID(id) }), nil, nil)
		if err != nil {
			return nil, err
		}
		states, err := pgx.CollectRows(rows, pgx.RowTo[job.State])
		if err != nil {
			return nil, err
		}
		for _, state := range states {
			erased[state]++
		}
	}
	late, err := lateDeliveries(ctx, tx, ended, e.AskedAt)
	if err != nil {
		return nil, err
	}
	var blanked int64
	for _, n := range erased {
		blanked += n
	}
	_, err = tx.Exec(ctx, sql.Text("save_erasure"), postgres.UUID(e.ID), postgres.UUID(last), blanked, open+late, len(found) < limit)
	return erased, err
}

// lateDeliveries counts deliveries of those jobs that are open and were made after the
// erasure was asked for: it does not find them among the tenant's jobs.
func lateDeliveries(ctx context.Context, tx pgx.Tx, ended []job.ID, askedAt time.Time) (int, error) {
	if len(ended) == 0 {
		return 0, nil
	}
	counts, err := postgres.Rows(ctx, tx, "open_deliveries", pgx.RowTo[int64],
		postgres.Column(ended, func(id job.ID) pgtype.UUID { return postgres.UUID(id) }), askedAt)
	if err != nil {
		return 0, err
	}
	return int(counts[0]), nil
}
