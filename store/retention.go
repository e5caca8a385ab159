package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// sweptSlack is how much older than its time a job must be by its id: most jobs have ended
// within that time after their creation, so the walk comes late enough for them.
const sweptSlack = time.Minute

// sweptRow is what delete_ended.sql and delete_dead.sql return.
type sweptRow struct {
	Mine, Reached    bool
	Walked, Behind   time.Duration
	DeletedSucceeded int64
	DeletedCanceled  int64
	DeletedDead      int64
	BlankedSucceeded int64
	BlankedCanceled  int64
	BlankedDead      int64
	Late             *time.Duration
}

func (r sweptRow) swept() job.Swept {
	swept := job.Swept{
		Mine: r.Mine, Reached: r.Reached, Walked: r.Walked, Behind: r.Behind,
		Deleted: map[job.State]int64{job.Succeeded: r.DeletedSucceeded, job.Canceled: r.DeletedCanceled, job.Dead: r.DeletedDead},
		Blanked: map[job.State]int64{job.Succeeded: r.BlankedSucceeded, job.Canceled: r.BlankedCanceled, job.Dead: r.BlankedDead},
	}
	if r.Late != nil {
		swept.Late = *r.Late
	}
	return swept
}

// Sweep looks at up to limit jobs of a walk, from where the last look ended, or from the
// first if restart is set. It deletes or blanks those whose time is over. The worker is the
// name of this process. Any number of processes may call it: one works at a time, and the
// others return at once. Nothing is done if the policies keep all jobs of the walk.
//
// A crash of the database may undo what was done within the last second: it is done again.
func (s *Store) Sweep(
	ctx context.Context, walk job.Walk, policies job.RetentionPolicies, worker string, limit int, restart bool,
) (job.Swept, error) {
	shortest, some := policies.Shortest(walk.States()...)
	if !some {
		return job.Swept{Reached: true}, nil
	}
	text, err := json.Marshal(policies)
	if err != nil {
		return job.Swept{}, fmt.Errorf("sweep: %w", err)
	}
	types, retentions := policies.All()
	periods := func(keep func(job.Retention) *time.Duration) pgtype.ArrayGetter {
		return postgres.Column(retentions, func(r job.Retention) pgtype.Interval { return kept(keep(r)) })
	}
	keys := periods(func(r job.Retention) *time.Duration { return r.Keys })
	return postgres.Write(ctx, s.db.Worker, "sweep", func(ctx context.Context, conn *pgx.Conn) (job.Swept, error) {
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("commit_fast"))
		var rows []sweptRow
		if walk == job.WalkDead {
			postgres.QueueRows(batch, &rows, "delete_dead", pgx.RowToStructByName[sweptRow],
				types, periods(func(r job.Retention) *time.Duration { return r.Dead }), keys,
				string(text), postgres.Interval(shortest), limit, restart, worker)
		} else {
			postgres.QueueRows(batch, &rows, "delete_ended", pgx.RowToStructByName[sweptRow],
				types, periods(func(r job.Retention) *time.Duration { return r.Succeeded }),
				periods(func(r job.Retention) *time.Duration { return r.Canceled }), keys,
				string(text), postgres.UUID(firstID(time.Now().Add(-shortest-sweptSlack))), limit, restart, worker)
		}
		if err := conn.SendBatch(ctx, batch).Close(); err != nil || len(rows) == 0 {
			return job.Swept{}, cmp.Or(err, pgx.ErrNoRows)
		}
		return rows[0].swept(), nil
	})
}

// kept is null for ever.
func kept(keep *time.Duration) pgtype.Interval {
	if keep == nil {
		return pgtype.Interval{}
	}
	return postgres.Interval(*keep)
}

// plannedPages is how much of the ledger a plan reads: about 200,000 jobs, in a second or two.
const plannedPages = 25_000

// PlanRetention returns what Sweep would do now if it looked at all jobs. It reads a sample
// of a large ledger.
func (s *Store) PlanRetention(ctx context.Context, policies job.RetentionPolicies) (job.RetentionPlan, error) {
	plan := job.RetentionPlan{At: time.Now().UTC(), Sampled: 1, Groups: []job.RetentionGroup{}}
	types, retentions := policies.All()
	args := []any{types}
	for _, keep := range []func(job.Retention) *time.Duration{
		func(r job.Retention) *time.Duration { return r.Succeeded }, func(r job.Retention) *time.Duration { return r.Canceled },
		func(r job.Retention) *time.Duration { return r.Dead }, func(r job.Retention) *time.Duration { return r.Keys },
	} {
		args = append(args, postgres.Column(retentions, func(r job.Retention) pgtype.Interval { return kept(keep(r)) }))
	}
	err := s.figures(ctx, "plan retention", func(tx pgx.Tx) error {
		pages, err := postgres.Rows(ctx, tx, "plan_pages", pgx.RowTo[int64])
		if err != nil {
			return err
		}
		if pages[0] > plannedPages {
			plan.Sampled = float64(plannedPages) / float64(pages[0])
		}
		plan.Groups, err = postgres.Rows(ctx, tx, "plan_retention", pgx.RowToStructByName[job.RetentionGroup], append(args, float32(100*plan.Sampled))...)
		return err
	})
	for i := range plan.Groups {
		group := &plan.Groups[i]
		group.Jobs, group.Bytes = int64(float64(group.Jobs)/plan.Sampled), int64(float64(group.Bytes)/plan.Sampled)
	}
	return plan, err
}

// ForgetWalk forgets how far a walk is, because nothing is deleted by it any more. Without
// this, the doctor would miss the deleter.
func (s *Store) ForgetWalk(ctx context.Context, walk job.Walk) error {
	return s.db.Worker.Do(ctx, "forget_walk", string(walk))
}
