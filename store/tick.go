package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// dueRow is a schedule of which a tick is due.
type dueRow struct {
	scheduleRow
	Now time.Time
}

// FireSchedules takes up to limit schedules of which a tick is due, asks decide what to do
// with them at that moment of the database, makes the jobs, and moves the schedules on, in
// one transaction: a crash at any moment leaves all of it or nothing. Other processes take
// other schedules meanwhile. A job that cannot be stored keeps back no other.
//
// decide may be called again after a deadlock, and when FireSchedules has returned because
// its context ended, so it must not share variables with its caller. It returns one firing
// for each schedule, in their order, or stops earlier: the rest stays due. If the error includes job.ErrOutcomeUnknown, call FireSchedules again:
// what it has done is not due any more.
func (s *Store) FireSchedules(
	ctx context.Context, limit int, decide func(due []job.DueSchedule, now time.Time) []job.Firing,
) ([]job.Fired, error) {
	return postgres.Write(ctx, s.db.Submissions, "fire schedules", func(ctx context.Context, conn *pgx.Conn) (fired []job.Fired, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			rows, err := postgres.Rows(ctx, tx, "due_schedules", pgx.RowToStructByName[dueRow], limit)
			if err != nil || len(rows) == 0 {
				return err
			}
			due, err := withLastJobs(ctx, tx, rows)
			if err != nil {
				return err
			}
			fired, err = fire(ctx, tx, due, decide(due, rows[0].Now.UTC()))
			return err
		})
		return fired, err
	})
}

// withLastJobs returns the schedules of rows that are locked, with how their last jobs are
// now. Only an overlap asks for that.
func withLastJobs(ctx context.Context, tx pgx.Tx, rows []dueRow) ([]job.DueSchedule, error) {
	due := make([]job.DueSchedule, len(rows))
	var last []job.ID
	for i, row := range rows {
		due[i] = job.DueSchedule{Schedule: row.schedule()}
		if due[i].Overlap != job.OverlapAllow && due[i].LastJob != nil {
			last = append(last, *due[i].LastJob)
		}
	}
	states, err := statesOf(ctx, tx, last)
	if err != nil {
		return nil, err
	}
	for i := range due {
		if id := due[i].LastJob; id != nil {
			state := states[*id]
			due[i].LastJobState, due[i].LastJobRunning = state, state == job.Running
			due[i].LastJobOpen = isOpen(state)
		}
	}
	return due, nil
}

// isOpen is false for the empty state of a job that is deleted.
func isOpen(state job.State) bool { return state != "" && !state.Final() }

func statesOf(ctx context.Context, tx pgx.Tx, jobs []job.ID) (map[job.ID]job.State, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	type row struct {
		JobID job.ID
		State string
	}
	ids := postgres.Column(jobs, func(id job.ID) pgtype.UUID { return postgres.UUID(id) })
	rows, err := postgres.Rows(ctx, tx, "last_jobs", pgx.RowToStructByName[row], ids)
	states := make(map[job.ID]job.State, len(rows))
	for _, r := range rows {
		states[r.JobID] = job.State(r.State)
	}
	return states, err
}

func fire(ctx context.Context, tx pgx.Tx, due []job.DueSchedule, firings []job.Firing) ([]job.Fired, error) {
	fired := make([]job.Fired, len(firings))
	var submissions []job.Submission
	for i, firing := range firings {
		fired[i] = job.Fired{Tenant: due[i].Tenant, Name: due[i].Name, LastTick: due[i].LastTick, Firing: firing}
		for _, one := range firing.Jobs {
			submissions = append(submissions, one.Submission)
		}
	}
	results, err := submitWithin(ctx, tx, submissions)
	if err != nil {
		return nil, err
	}
	for i := range fired {
		n := len(firings[i].Jobs)
		fired[i].Results, results = results[:n:n], results[n:]
		if last := due[i].LastJob; firings[i].CancelLast && last != nil && fired[i].Fresh() {
			if err := cancelLast(ctx, tx, *last, &fired[i]); err != nil {
				return nil, err
			}
		}
	}
	return fired, moveSchedules(ctx, tx, fired)
}

// cancelLast cancels the last job of a schedule, which another has replaced. Like
// Store.Cancel, it looks again if the job has just moved. The transaction goes on even if
// the job cannot be canceled: the new one waits for it.
func cancelLast(ctx context.Context, tx pgx.Tx, last job.ID, fired *job.Fired) error {
	for range cancelTries {
		var done []string
		batch := &pgx.Batch{}
		postgres.QueueRows(batch, &done, "cancel", pgx.RowTo[string], postgres.UUID(last))
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		if len(done) > 0 {
			fired.Canceled = &job.Cancellation{
				View: job.View{ID: last, State: job.Running}, Canceled: slices.Contains(done, canceledAtOnce),
				Requested: slices.Contains(done, cancelRequested), Freed: slices.Contains(done, slotsFreed),
				Followed: slices.Contains(done, followerTold),
			}
			if fired.Canceled.Canceled {
				fired.Canceled.State = job.Canceled
			}
			return nil
		}
		states, err := statesOf(ctx, tx, []job.ID{last})
		if err != nil || !isOpen(states[last]) {
			return err
		}
	}
	fired.Firing.Error = fmt.Sprintf("the earlier job %s could not be canceled", last)
	return nil
}

// submitWithin stores the jobs in a transaction, and returns a result for each. If one of
// them cannot be stored, each is tried alone.
func submitWithin(ctx context.Context, tx pgx.Tx, submissions []job.Submission) ([]job.Submitted, error) {
	if len(submissions) == 0 {
		return nil, nil
	}
	results, err := submitAllWithin(ctx, tx, submissions)
	if err == nil || !refusesData(err) || len(submissions) == 1 {
		if err != nil && refusesData(err) {
			return []job.Submitted{{Err: job.ErrBadData}}, nil
		}
		return results, err
	}
	results = nil
	for _, one := range submissions {
		alone, err := submitWithin(ctx, tx, []job.Submission{one})
		if err != nil {
			return nil, err
		}
		results = append(results, alone...)
	}
	return results, nil
}

func refusesData(err error) bool { return errors.Is(postgres.Translate("submit", err), job.ErrBadData) }

// submitAllWithin stores all of the jobs, or leaves the transaction as it was.
func submitAllWithin(ctx context.Context, tx pgx.Tx, submissions []job.Submission) ([]job.Submitted, error) {
	b := newBatch(submissions)
	results := make([]job.Submitted, len(submissions))
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		for missing := 0; len(b.distinct) > 0; missing++ {
			if missing > mostInsertions {
				return errNoHolder
			}
			stored, err := b.insert(ctx, tx)
			if err != nil {
				return err
			}
			for i, result := range stored {
				results[i] = result
			}
			b.distinct = slices.DeleteFunc(b.distinct, func(i int) bool { _, ok := stored[i]; return ok })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.repeat(results)
	return results, nil
}

// moveSchedules writes down what became of the ticks.
func moveSchedules(ctx context.Context, tx pgx.Tx, fired []job.Fired) error {
	type end struct {
		counts  job.ScheduleCounts
		failure string
		tick    time.Time // of the latest job
		job     job.ID
	}
	ends := make([]end, len(fired))
	for i := range fired {
		ends[i].counts, ends[i].failure = fired[i].Counts()
		ends[i].tick, ends[i].job = fired[i].Latest()
	}
	_, err := tx.Exec(ctx, sql.Text("move_schedules"),
		postgres.Column(fired, func(f job.Fired) string { return f.Tenant }),
		postgres.Column(fired, func(f job.Fired) string { return f.Name }),
		postgres.Column(fired, func(f job.Fired) pgtype.Timestamptz { return postgres.Instant(f.Firing.Next) }),
		postgres.Column(ends, func(e end) pgtype.Timestamptz { return postgres.Instant(e.tick) }),
		postgres.Column(ends, func(e end) pgtype.UUID { return pgtype.UUID{Bytes: e.job, Valid: e.job != job.ID{}} }),
		postgres.Column(ends, func(e end) pgtype.Text { return postgres.Text(e.failure) }),
		postgres.Column(ends, func(e end) int64 { return e.counts.Fired }),
		postgres.Column(ends, func(e end) int64 { return e.counts.Skipped }),
		postgres.Column(ends, func(e end) int64 { return e.counts.Missed }),
		postgres.Column(ends, func(e end) int64 { return e.counts.Failed }),
		postgres.Column(fired, func(f job.Fired) pgtype.Timestamptz { return postgres.Instant(f.Firing.RetryAt) }))
	return err
}

// NextTick returns how long it is until the next tick of a schedule is due; ok is false when
// none is.
func (s *Store) NextTick(ctx context.Context) (in time.Duration, ok bool, err error) {
	next, err := postgres.Read(ctx, s.db.Worker, "next_tick", pgx.RowTo[time.Duration])
	if len(next) == 0 {
		return 0, false, err
	}
	return next[0], true, nil
}
