package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// followBatch bounds the ends that one round follows up.
const followBatch = 500

// cancelingWorkflows bounds the workflows that a round names as being canceled.
const cancelingWorkflows = 10

type endedRow struct {
	job.Ended
	Missing bool
}

// Follow does one round of following up: it takes ends out of the inbox, and does what
// others have asked for, in one transaction. Processes take turns. After an error, nothing
// is known about the round: the next one does what it has not done.
func (s *Store) Follow(ctx context.Context, plan job.FollowPlan) (job.Following, error) {
	return postgres.Write(ctx, s.db.Worker, "follow", func(ctx context.Context, conn *pgx.Conn) (done job.Following, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			done, err = follow(ctx, tx, plan)
			return err
		})
		return done, err
	})
}

func follow(ctx context.Context, tx pgx.Tx, plan job.FollowPlan) (job.Following, error) {
	batch := &pgx.Batch{}
	batch.Queue(sql.Text("lock_following"))
	var taken []endedRow
	var canceling []job.ID
	postgres.QueueRows(batch, &taken, "drain_ends", pgx.RowToStructByName[endedRow], followBatch)
	postgres.QueueRows(batch, &canceling, "unfinished_workflows", pgx.RowTo[job.ID], postgres.UUID(plan.CancelingAfter), cancelingWorkflows, true)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return job.Following{}, err
	}
	done := job.Following{Ended: present(taken), More: len(taken) == followBatch, Canceling: canceling}
	if len(canceling) == cancelingWorkflows {
		done.CancelingNext = canceling[len(canceling)-1]
	}
	var err error
	if done.Delivered, err = deliver(ctx, tx, done.Ended, plan.Deliveries); err != nil {
		return job.Following{}, err
	}
	if done.Recorded, err = record(ctx, tx, done.Ended, plan.Events); err != nil {
		return job.Following{}, err
	}
	return done, followWorkflows(ctx, tx, workflowEnds(taken), &done)
}

// present are the ends of jobs that are still in the ledger.
func present(rows []endedRow) (ended []job.Ended) {
	for _, row := range rows {
		if !row.Missing {
			ended = append(ended, row.Ended)
		}
	}
	return ended
}
