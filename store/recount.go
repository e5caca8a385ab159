package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Miscounted is a gate whose stored slots are not those of the jobs that hold them.
type Miscounted struct {
	Gate string
	// Surplus is how many too many are stored; below zero if there are too few.
	Surplus int32
}

// Recount corrects the slots if they differ from the jobs that hold them, which happens
// if an orchestrator that knows nothing of gates ended jobs. It also forgets what no
// decision depends on any more. It returns how many gates were wrong.
func (s *Store) Recount(ctx context.Context, rules *job.Rules) (corrected int, err error) {
	suspects, err := postgres.Read(ctx, s.db.Worker, "miscounted", pgx.RowToStructByName[Miscounted])
	if err != nil {
		return 0, err
	}
	return postgres.Write(ctx, s.db.Worker, "recount", func(ctx context.Context, conn *pgx.Conn) (int, error) {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("lock_admission"))
		var wrong []Miscounted
		if len(suspects) > 0 { // again, because another process may have corrected them meanwhile
			postgres.QueueRows(batch, &wrong, "miscounted", pgx.RowToStructByName[Miscounted])
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return 0, err
		}
		batch = &pgx.Batch{}
		if len(wrong) > 0 {
			batch.Queue(sql.Text("correct_slots"),
				postgres.Column(wrong, func(m Miscounted) string { return m.Gate }),
				postgres.Column(wrong, func(m Miscounted) int32 { return m.Surplus }))
		}
		refill := postgres.Interval(longestRefill(rules))
		batch.Queue(sql.Text("forget_slots"), refill)
		batch.Queue(sql.Text("forget_turns"))
		batch.Queue(sql.Text("forget_old_admitted"), refill)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return 0, err
		}
		return len(wrong), tx.Commit(ctx)
	})
}

// longestRefill is how long it takes until any rate has its whole burst again.
func longestRefill(rules *job.Rules) time.Duration {
	var longest time.Duration
	for _, limit := range rules.Limits() {
		if rate := limit.Rate; rate != nil {
			longest = max(longest, time.Duration(float64(rate.Burst)/perSecond(rate)*float64(time.Second)))
		}
	}
	return longest
}
