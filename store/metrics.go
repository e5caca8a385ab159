package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// withTimeForFigures lets a reading that nobody waits for finish on a busy server.
const withTimeForFigures = "set local statement_timeout = '15s'"

// forFigures are settings for reading whole lists, which may take long. Sequential
// scans are allowed. Parallel processes are not, because the loops need their
// processors. Joins still use the indexes: a hash join would read the whole ledger.
const forFigures = withTimeForFigures + "; set local enable_seqscan = on; set local enable_hashagg = on; set local max_parallel_workers_per_gather = 0"

// figures runs f in one snapshot, which may be a little old. f may run twice, and must not
// run statements that are also run elsewhere: a connection keeps the plans that it made.
func (s *Store) figures(ctx context.Context, operation string, f func(pgx.Tx) error) error {
	return s.db.StaleFigures.Snapshot(ctx, operation, forFigures, f)
}

// currentFigures is figures on the primary.
func (s *Store) currentFigures(ctx context.Context, operation string, f func(pgx.Tx) error) error {
	return s.db.Figures.Snapshot(ctx, operation, forFigures, f)
}

// maxLimits is how many limits are shown, so that there are not more metrics than a
// collector can take.
const maxLimits = 500

func readGates(ctx context.Context, tx pgx.Tx, m *v1.Metrics) error {
	type row struct {
		Scope, Name *string // nil if there is no limit
		Used, Slots *int64
		Inbox       int64
	}
	found, err := postgres.Rows(ctx, tx, "metrics_gates", pgx.RowToStructByName[row], maxLimits)
	m.Limits = []v1.LimitUse{}
	for _, row := range found {
		m.AdmissionInbox = row.Inbox
		if row.Name != nil {
			m.Limits = append(m.Limits, v1.LimitUse{Scope: job.LimitScope(*row.Scope), Name: *row.Name, Used: *row.Used, Slots: *row.Slots})
		}
	}
	return err
}

// Metrics describes the whole system at one moment. It reads the narrow lists and
// the tallies, never the ledger of ended jobs, so its cost grows with the waiting jobs,
// not with the ended ones. The window covers at most a day. The oldest snapshot is always that of
// the primary, where vacuum runs.
//
// It reads the slowest figures last. If the context ends before, it returns the figures
// that it has, with the error. At is not zero once the database has answered; StatusCounts
// and Queues are nil while they are not known.
func (s *Store) Metrics(ctx context.Context, window time.Duration) (v1.Metrics, error) {
	var m v1.Metrics
	err := s.currentFigures(ctx, "snapshots", func(tx pgx.Tx) error { return readSnapshot(ctx, tx, &m) })
	if err != nil {
		return m, err
	}
	err = s.figures(ctx, "metrics", func(tx pgx.Tx) (err error) {
		for _, read := range []func(context.Context, pgx.Tx, *v1.Metrics) error{readGates, readTypes} {
			if err := read(ctx, tx, &m); err != nil {
				return err
			}
		}
		if err := readRecent(ctx, tx, window, &m); err != nil {
			return err
		}
		open, err := readOpen(ctx, tx)
		if err != nil {
			return err
		}
		if err := readCounts(ctx, tx, open, &m); err != nil {
			return err
		}
		m.Queues, err = queuesOf(ctx, tx, open)
		return err
	})
	return m, err
}

// WorkerTotals counts the jobs that run, and those that ended within the window, by
// state. If the window is zero, it counts those that have ever ended.
func (s *Store) WorkerTotals(ctx context.Context, window time.Duration) (map[job.State]int64, error) {
	totals := make(map[job.State]int64)
	err := s.figures(ctx, "worker totals", func(tx pgx.Tx) error {
		for _, state := range job.States() {
			if state.Final() {
				totals[state] = 0
			}
		}
		running, err := postgres.Rows(ctx, tx, "metrics_running", pgx.RowTo[int64])
		if err != nil {
			return err
		}
		totals[job.Running] = running[0]
		if window == 0 {
			dead, err := postgres.Rows(ctx, tx, "metrics_dead", pgx.RowTo[int64])
			if err != nil {
				return err
			}
			totals[job.Dead] = dead[0]
			return countFinal(ctx, tx, totals)
		}
		happened, err := eventsWithin(ctx, tx, window)
		totals[job.Succeeded], totals[job.Dead], totals[job.Canceled] = happened["succeeded"], happened["dead"], happened.canceled()
		return err
	})
	return totals, err
}

func readSnapshot(ctx context.Context, tx pgx.Tx, m *v1.Metrics) error {
	type row struct {
		At           time.Time
		Transactions int64
		Age          time.Duration
	}
	found, err := postgres.Rows(ctx, tx, "metrics_snapshot", pgx.RowToStructByName[row])
	if err == nil {
		m.At, m.SnapshotAgeTransactions, m.OldestSnapshotSeconds = found[0].At.UTC(), found[0].Transactions, found[0].Age.Seconds()
	}
	return err
}

// readCounts counts jobs by state, with a count for every state, by the attempts
// that they were charged, and by worker.
func readCounts(ctx context.Context, tx pgx.Tx, open []openJobs, m *v1.Metrics) error {
	counts, attempts := make(map[job.State]int64), make(map[int]int64)
	for _, state := range job.States() {
		counts[state] = 0
	}
	final, err := counted[int](ctx, tx, "metrics_attempts")
	if err != nil {
		return err
	}
	for _, row := range final {
		if row.Jobs != 0 {
			attempts[row.Of] = row.Jobs
		}
	}
	for _, row := range open {
		counts[row.State] += row.Jobs
		if !row.State.Final() {
			attempts[row.Attempt] += row.Jobs
		}
	}
	if err := countFinal(ctx, tx, counts); err != nil {
		return err
	}
	m.StatusCounts, m.ScheduledForRetry, m.AttemptDistribution = counts, counts[job.Retry], attempts
	m.ByWorker, err = jobsByWorker(ctx, tx)
	return err
}

// countFinal sets the counts of jobs in final states, but for dead ones.
func countFinal(ctx context.Context, tx pgx.Tx, counts map[job.State]int64) error {
	found, err := counted[job.State](ctx, tx, "metrics_final")
	for _, row := range found {
		counts[row.Of] = row.Jobs
	}
	return err
}

func jobsByWorker(ctx context.Context, tx pgx.Tx) (map[string]map[job.State]int64, error) {
	type row struct {
		WorkerID string
		State    job.State
		Jobs     int64
	}
	found, err := postgres.Rows(ctx, tx, "metrics_workers", pgx.RowToStructByName[row])
	workers := make(map[string]map[job.State]int64)
	for _, row := range found {
		if workers[row.WorkerID] == nil {
			workers[row.WorkerID] = make(map[job.State]int64)
		}
		workers[row.WorkerID][row.State] = row.Jobs
	}
	return workers, err
}

func readTypes(ctx context.Context, tx pgx.Tx, m *v1.Metrics) error {
	type row struct {
		JobType   string
		Failures  int64
		Successes int64
		Seconds   float64
	}
	found, err := postgres.Rows(ctx, tx, "metrics_types", pgx.RowToStructByName[row])
	m.FailuresByJobType, m.AvgDurationSecondsByJobType = make(map[string]int64), make(map[string]float64)
	for _, row := range found {
		if row.Failures > 0 {
			m.FailuresByJobType[row.JobType] = row.Failures
		}
		if row.Successes > 0 {
			m.AvgDurationSecondsByJobType[row.JobType] = row.Seconds / float64(row.Successes)
		}
	}
	return err
}

func readRecent(ctx context.Context, tx pgx.Tx, window time.Duration, m *v1.Metrics) error {
	happened, err := eventsWithin(ctx, tx, window)
	if err != nil {
		return err
	}
	m.Recent = v1.Recent{
		SinceMinutes: int(window.Minutes()),
		Submitted:    happened["submitted"], Succeeded: happened["succeeded"], Dead: happened["dead"],
		Canceled: happened.canceled(), FailedAttempts: happened.failed(), Requeued: happened["requeued"],
	}
	lastMinute, err := eventsWithin(ctx, tx, time.Minute)
	m.ProcessedLastMinute = lastMinute["succeeded"] + lastMinute.failed() + lastMinute["canceled"]
	return err
}

// events is how often each event happened in a window.
type events map[string]int64

func eventsWithin(ctx context.Context, tx pgx.Tx, window time.Duration) (events, error) {
	found, err := counted[string](ctx, tx, "metrics_recent", postgres.Interval(window))
	happened := make(events, len(found))
	for _, row := range found {
		happened[row.Of] = row.Jobs
	}
	return happened, err
}

func (e events) canceled() int64 { return e["canceled"] + e["withdrawn"] }

// failed is how many attempts failed: every dead job has one that did.
func (e events) failed() int64 { return e["failed"] + e["dead"] }

// count is how many jobs there are of one state, event or number of attempts.
type count[K any] struct {
	Of   K
	Jobs int64
}

func counted[K any](ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]count[K], error) {
	return postgres.Rows(ctx, tx, statement, pgx.RowToStructByPos[count[K]], args...)
}
