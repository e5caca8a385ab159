package store

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// operateTries limits how often a portion tries to act on a job that moves from list to list.
const operateTries = 3

// OperateNext does a portion of the operation that is due first and that nobody works on. It
// returns false if there is none. What the portion does to the jobs, and how far the operation
// is, is one transaction. An error after the choice of the operation is a
// *job.OperationError.
func (s *Store) OperateNext(ctx context.Context) (done job.PortionDone, found bool, err error) {
	type result struct {
		done  job.PortionDone
		found bool
	}
	var working atomic.Pointer[job.ID]
	worked, err := postgres.Write(ctx, s.db.Worker, "operate", func(ctx context.Context, conn *pgx.Conn) (r result, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			next, err := postgres.Rows(ctx, tx, "next_operation", pgx.RowToStructByName[operationRow])
			if err != nil || len(next) == 0 {
				return err
			}
			working.Store(&next[0].ID)
			r.found = true
			r.done.Operation, err = next[0].operation()
			if err == nil {
				err = operatePortion(ctx, tx, &r.done)
			}
			return err
		})
		return r, err
	})
	if id := working.Load(); err != nil && id != nil {
		err = &job.OperationError{ID: *id, Err: err}
	}
	if err != nil {
		return job.PortionDone{}, false, err
	}
	return worked.done, worked.found, nil
}

// portion is what a transaction does of an operation.
type portion struct {
	tx   pgx.Tx
	done *job.PortionDone
	left map[job.ID]bool // neither done nor skipped yet
}

func operatePortion(ctx context.Context, tx pgx.Tx, done *job.PortionDone) error {
	o := &done.Operation
	found, next, err := nextPortion(ctx, tx, o.Filter, o.Portion())
	if err != nil {
		return err
	}
	p := &portion{tx: tx, done: done, left: make(map[job.ID]bool, len(found))}
	for _, id := range found {
		p.left[id] = true
	}
	if len(found) > 0 {
		if err := p.act(ctx, found); err != nil {
			return err
		}
	}
	done.Found = len(found)
	o.Found += int64(len(found))
	o.Done += int64(done.Acted)
	return p.save(ctx, next)
}

// nextPortion returns up to limit jobs that come next, and where the operation goes on
// afterwards; the zero id if there are no more.
func nextPortion(ctx context.Context, tx pgx.Tx, filter job.Filter, limit int) (found []job.ID, next job.ID, err error) {
	type row struct {
		ID     job.ID
		Listed bool
	}
	page, last, args := matching(filter, limit, maxScan)
	batch := &pgx.Batch{}
	var rows []row
	batch.Queue(sql.Text("list_by_index"))
	batch.Queue(page+"\nselect s.job_id as id, true as listed from page s\nunion all\nselect l.job_id, false from ("+last+") l", args...).
		Query(func(r pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(r, pgx.RowToStructByName[row])
			return err
		})
	batch.Queue(sql.Text("sort_again"))
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, next, err
	}
	for _, r := range rows {
		if r.Listed {
			found = append(found, r.ID)
		} else {
			next = r.ID
		}
	}
	slices.SortFunc(found, func(a, b job.ID) int { return bytes.Compare(a[:], b[:]) })
	if len(found) == limit {
		next = found[0]
	}
	return found, next, nil
}

// act acts on those of the jobs that still match once they are locked.
func (p *portion) act(ctx context.Context, ids []job.ID) error {
	tx := p.tx
	if _, err := tx.Exec(ctx, sql.Text("lock_jobs"), columnOf(ids)); err != nil {
		return err
	}
	still, err := p.stillMatching(ctx, ids)
	if err != nil {
		return err
	}
	for try := 0; try < operateTries && len(still) > 0; try++ {
		if err := p.try(ctx, still); err != nil {
			return err
		}
		still = slices.DeleteFunc(still, func(id job.ID) bool { return !p.left[id] })
	}
	return p.skip(ctx, still)
}

// stillMatching returns those of the jobs that the filter selects now.
func (p *portion) stillMatching(ctx context.Context, ids []job.ID) ([]job.ID, error) {
	chosen, args := conditions(p.done.Operation.Filter, []any{columnOf(ids)})
	tx := p.tx
	rows, err := tx.Query(ctx, "select s.job_id from jobs s where s.job_id = any ($1::uuid[]) and "+chosen+" order by s.job_id", args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[job.ID])
}
