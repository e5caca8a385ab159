package store

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// ageQueues and ageJobs bound one transaction of Age: how many queues it looks at, and how
// many jobs of each.
const (
	ageQueues = 500
	ageJobs   = 200
)

// Age raises jobs that have been due for longer than after to the priority of the most
// urgent job that waits in the same queue: the ready jobs of the type, or those at the same
// gate. It leaves out ready jobs of types to skip. It returns the jobs that it raised. While
// another process does the same, it does nothing.
func (s *Store) Age(ctx context.Context, after time.Duration, skip func(jobType string) bool) ([]job.Edited, error) {
	ready, err := s.age(ctx, skip, func(ctx context.Context, tx pgx.Tx, from agedQueue) ([]agedRow, error) {
		return postgres.Rows(ctx, tx, "age_ready", pgx.RowToStructByName[agedRow],
			postgres.Interval(after), from.Queue, from.Urgency, ageQueues, ageJobs)
	})
	if err != nil {
		return ready, err
	}
	parked, err := s.age(ctx, func(string) bool { return false }, func(ctx context.Context, tx pgx.Tx, from agedQueue) ([]agedRow, error) {
		return postgres.Rows(ctx, tx, "age_parked", pgx.RowToStructByName[agedRow],
			postgres.Interval(after), from.Queue, from.Urgency, ageQueues, ageJobs)
	})
	return append(ready, parked...), err
}

// agedQueue is a queue: the jobs of one urgency of a type or at a gate. Age goes from one to
// the next, in this order.
type agedQueue struct {
	Queue   string
	Urgency int16
}

// agedRow is a queue, the urgency of the first job of its type or gate, and a job that has
// waited long: null for a queue without any.
type agedRow struct {
	agedQueue

	Most  int16
	JobID pgtype.UUID
}

// lookForAged looks at some queues, from the one after from.
type lookForAged func(ctx context.Context, tx pgx.Tx, from agedQueue) ([]agedRow, error)

// age looks at all queues of a list, some in each transaction.
func (s *Store) age(ctx context.Context, skip func(string) bool, look lookForAged) (raised []job.Edited, err error) {
	from := agedQueue{Urgency: math.MinInt16}
	type result struct {
		raised []job.Edited
		next   agedQueue
		more   bool
	}
	for {
		start := from
		done, err := postgres.Write(ctx, s.db.Worker, "age", func(ctx context.Context, conn *pgx.Conn) (done result, err error) {
			err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				locked, err := postgres.Rows(ctx, tx, "lock_ageing", pgx.RowTo[bool])
				if err != nil || !locked[0] {
					return err
				}
				found, err := look(ctx, tx, start)
				if err != nil || len(found) == 0 {
					return err
				}
				batch, ages := raise(found, skip)
				if batch.Len() > 0 {
					if err := tx.SendBatch(ctx, batch).Close(); err != nil {
						return err
					}
				}
				for _, edited := range ages {
					done.raised = append(done.raised, edited()...)
				}
				done.next, done.more = found[len(found)-1].agedQueue, true
				if len(done.raised) >= ageJobs {
					done.next = start // there may be more in the same queues
				}
				return nil
			})
			return done, err
		})
		raised = append(raised, done.raised...)
		if err != nil || !done.more {
			return raised, err
		}
		from = done.next
	}
}

// raise adds the statements that raise the jobs to a batch: one edit for each priority.
func raise(found []agedRow, skip func(string) bool) (*pgx.Batch, []func() []job.Edited) {
	ids := make(map[int16][]job.ID)
	for _, row := range found {
		if row.JobID.Valid && !skip(row.Queue) {
			ids[-row.Most] = append(ids[-row.Most], row.JobID.Bytes)
		}
	}
	batch := &pgx.Batch{}
	var all []func() []job.Edited
	for priority, jobs := range ids {
		all = append(all, editing{ids: jobs, edit: job.Edit{Priority: &priority}, states: []job.State{job.Queued}, below: true}.queue(batch))
	}
	return batch, all
}
