package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// redeliverAfter is how long an end that could not be announced waits for the next try.
const redeliverAfter = 20 * time.Second

// refusedFor is for how long the database may refuse a delivery until it is given up.
const refusedFor = 24 * time.Hour

// Redeliver tries again to announce ends that could not be announced, in one transaction.
func (s *Store) Redeliver(ctx context.Context, plan job.DeliveryPlan) (job.Delivered, error) {
	return postgres.Write(ctx, s.db.Worker, "redeliver", func(ctx context.Context, conn *pgx.Conn) (done job.Delivered, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			batch := &pgx.Batch{}
			batch.Queue(sql.Text("lock_following"))
			var taken []endedRow
			postgres.QueueRows(batch, &taken, "take_undelivered", pgx.RowToStructByName[endedRow], postgres.Interval(redeliverAfter), followBatch)
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return err
			}
			if done, err = deliver(ctx, tx, present(taken), plan); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, sql.Text("drop_undelivered"),
				postgres.Column(taken, func(e endedRow) pgtype.UUID { return postgres.UUID(e.ID) }),
				postgres.Column(taken, func(e endedRow) pgtype.Timestamptz { return postgres.Instant(e.At) }))
			return err
		})
		return done, err
	})
}

// callbackRow is a job.Callback with what cannot be scanned into it.
type callbackRow struct {
	viewRow
	URL     string
	Omitted bool
}

// deliver makes a job for each of the ends that has a callback URL, in the transaction of
// the round: an end is announced exactly if it leaves the inbox. What cannot be announced is
// kept, and delays nothing else.
func deliver(ctx context.Context, tx pgx.Tx, ended []job.Ended, plan job.DeliveryPlan) (done job.Delivered, err error) {
	var due []job.Ended
	for _, one := range ended {
		if one.CalledBack {
			due = append(due, one)
		}
	}
	if len(due) == 0 {
		return done, nil
	}
	if plan.Type == nil {
		return done, keepUndelivered(ctx, tx, due, pgtype.Interval{}, "no plugin has ever declared the job type "+job.DeliveryType, &done)
	}
	callbacks, err := readCallbacks(ctx, tx, due)
	if err != nil {
		return done, err
	}
	return done, submitDeliveries(ctx, tx, callbacks, plan, &done)
}

func readCallbacks(ctx context.Context, tx pgx.Tx, due []job.Ended) ([]job.Callback, error) {
	rows, err := postgres.Rows(ctx, tx, "callbacks", pgx.RowToStructByNameLax[callbackRow],
		postgres.Column(due, func(e job.Ended) pgtype.UUID { return postgres.UUID(e.ID) }), job.MaxDelivered)
	byJob := make(map[job.ID]callbackRow, len(rows))
	for _, row := range rows {
		byJob[row.ID] = row
	}
	callbacks := make([]job.Callback, 0, len(due))
	for _, one := range due {
		if row, found := byJob[one.ID]; found {
			callbacks = append(callbacks, job.Callback{Ended: one, Now: row.view(), URL: row.URL, ResultOmitted: row.Omitted})
		}
	}
	return callbacks, err
}

// submitDeliveries halves the callbacks as long as they contain one whose job the database
// refuses, and keeps that one.
func submitDeliveries(ctx context.Context, tx pgx.Tx, callbacks []job.Callback, plan job.DeliveryPlan, done *job.Delivered) error {
	if len(callbacks) == 0 {
		return nil
	}
	made := job.Delivered{}
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
		submissions := make([]job.Submission, len(callbacks))
		for i := range callbacks {
			var err error
			if submissions[i], err = deliveryOf(&callbacks[i], plan); err != nil {
				return err
			}
		}
		if _, err := newBatch(submissions).insert(ctx, tx); err != nil {
			return err
		}
		for _, one := range submissions {
			made.Jobs++
			made.Ready = made.Ready || len(one.Gates) == 0
			made.Parked = made.Parked || len(one.Gates) > 0
		}
		return nil
	})
	switch {
	case err == nil:
		done.Jobs += made.Jobs
		done.Ready, done.Parked = done.Ready || made.Ready, done.Parked || made.Parked
		return nil
	case !errors.Is(postgres.Translate("deliver", err), job.ErrBadData):
		return err
	case len(callbacks) == 1:
		return keepUndelivered(ctx, tx, []job.Ended{callbacks[0].Ended}, postgres.Interval(refusedFor), "the database cannot store the delivery", done)
	}
	half := len(callbacks) / 2
	if err := submitDeliveries(ctx, tx, callbacks[:half], plan, done); err != nil {
		return err
	}
	return submitDeliveries(ctx, tx, callbacks[half:], plan, done)
}

// deliveryOf makes the job that announces an end.
func deliveryOf(c *job.Callback, plan job.DeliveryPlan) (job.Submission, error) {
	delivery, err := v1.DeliveryOf(*c)
	if err != nil {
		return job.Submission{}, fmt.Errorf("%w: delivery of job %s: %w", job.ErrBadData, c.ID, err)
	}
	payload, err := json.Marshal(delivery)
	if err != nil {
		return job.Submission{}, fmt.Errorf("%w: delivery of job %s: %w", job.ErrBadData, c.ID, err)
	}
	id, err := uuid.NewV7()
	return job.Submission{
		ID: plan.Cell.Stamp(job.ID(id)), Type: job.DeliveryType, Tenant: c.Tenant, Payload: payload, Parent: c.ID,
		MaxAttempts: plan.Type.MaxAttempts, Timeout: plan.Type.Timeout, Trace: c.Now.Trace,
		Gates: plan.Rules.Gates(job.DeliveryType, c.Tenant, job.Terms{}),
	}, err
}

// keepUndelivered keeps the ends to try them again, unless they could not be announced for the
// time giveUp, if it is one.
func keepUndelivered(ctx context.Context, tx pgx.Tx, ended []job.Ended, giveUp pgtype.Interval, reason string, done *job.Delivered) error {
	rows, err := tx.Query(ctx, sql.Text("keep_undelivered"),
		postgres.Column(ended, func(e job.Ended) pgtype.UUID { return postgres.UUID(e.ID) }),
		postgres.Column(ended, func(e job.Ended) string { return string(e.State) }),
		postgres.Column(ended, func(e job.Ended) pgtype.Timestamptz { return postgres.Instant(e.At) }),
		reason, giveUp)
	if err != nil {
		return err
	}
	givenUp, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return err
	}
	done.Failed += len(ended) - givenUp
	done.GivenUp += givenUp
	done.Reason = reason
	return nil
}
