package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Metrics says how the whole system stands, as of one moment. It reads the
// narrow lists and the tallies, never the ledger of what has ended: its cost
// grows with the jobs that wait, not with those that are done. The window
// reaches back at most a day.
//
// What takes longest is read last. When the context ends meanwhile, the error
// comes with what is known by then: At is not zero once the database has
// answered, Counts and Queues are nil for as long as they are not known.
func (s *Store) Metrics(ctx context.Context, window time.Duration) (job.Metrics, error) {
	m := job.Metrics{Window: window}
	err := s.atOneMoment(ctx, "metrics", func(tx pgx.Tx) error {
		if err := readAll(ctx, tx, &m, window); err != nil {
			return err
		}
		var err error
		m.Queues, err = readQueues(ctx, tx)
		return err
	})
	return m, err
}

func readAll(ctx context.Context, tx pgx.Tx, m *job.Metrics, window time.Duration) error {
	if err := readSnapshot(ctx, tx, m); err != nil {
		return err
	}
	if err := readCounts(ctx, tx, m); err != nil {
		return err
	}
	var err error
	if m.ByWorker, err = readByWorker(ctx, tx); err != nil {
		return err
	}
	if err := readTypes(ctx, tx, m); err != nil {
		return err
	}
	recently, err := readRecent(ctx, tx, window)
	if err != nil {
		return err
	}
	m.Recent = job.Recent{
		Submitted: recently["submitted"], Succeeded: recently["succeeded"], Dead: recently["dead"],
		Canceled: recently.canceled(), Failed: recently.failed(), Requeued: recently["requeued"],
	}
	lastMinute, err := readRecent(ctx, tx, time.Minute)
	m.ProcessedLastMinute = lastMinute.processed()
	return err
}

// WorkerTotals counts the jobs that run, and those that have ended within the
// window, by state; those that have ended ever when the window is zero.
func (s *Store) WorkerTotals(ctx context.Context, window time.Duration) (map[job.State]int64, error) {
	totals := make(map[job.State]int64)
	err := s.atOneMoment(ctx, "worker totals", func(tx pgx.Tx) error {
		for _, state := range job.States() {
			if state.Final() {
				totals[state] = 0
			}
		}
		var err error
		if totals[job.Running], err = readRunning(ctx, tx); err != nil {
			return err
		}
		if window == 0 {
			return readFinal(ctx, tx, totals)
		}
		recent, err := readRecent(ctx, tx, window)
		totals[job.Succeeded], totals[job.Dead], totals[job.Canceled] = recent["succeeded"], recent["dead"], recent.canceled()
		return err
	})
	return totals, err
}

// forFigures are settings for reading lists whole, which may take its time: not through an index, and
// not by several processes, whose processors the loops need. Joins are left to
// the indexes, whatever statistics say: a hash join would read the ledger whole.
const forFigures = "set local statement_timeout = '15s'; set local enable_seqscan = on; set local enable_hashagg = on; set local max_parallel_workers_per_gather = 0"

// atOneMoment reads in one snapshot. What it asks must not be asked elsewhere:
// connections keep the plans they made.
func (s *Store) atOneMoment(ctx context.Context, operation string, read func(pgx.Tx) error) error {
	return s.figures.read(ctx, operation, func(conn *pgxpool.Conn) error {
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, forFigures); err != nil {
				return err
			}
			return read(tx)
		})
		return translate(operation, err)
	})
}

func readSnapshot(ctx context.Context, tx pgx.Tx, m *job.Metrics) error {
	type row struct {
		At           time.Time
		Transactions int64
		Age          time.Duration
	}
	found, err := read(ctx, tx, metricsSnapshotSQL, pgx.RowToStructByName[row])
	if err == nil {
		m.At, m.SnapshotAge, m.OldestSnapshot = found[0].At, found[0].Transactions, found[0].Age
	}
	return err
}

// readCounts counts jobs by state, with a count for every state, and by the
// attempts they have been charged.
func readCounts(ctx context.Context, tx pgx.Tx, m *job.Metrics) error {
	type row struct {
		State   string
		Attempt int
		Jobs    int64
	}
	found, err := read(ctx, tx, metricsOpenSQL, pgx.RowToStructByName[row])
	if err != nil {
		return err
	}
	counts := make(map[job.State]int64)
	for _, state := range job.States() {
		counts[state] = 0
	}
	attempts, err := readAttempts(ctx, tx)
	if err != nil {
		return err
	}
	for _, row := range found {
		counts[job.State(row.State)] += row.Jobs
		attempts[row.Attempt] += row.Jobs
	}
	if err := readFinal(ctx, tx, counts); err != nil {
		return err
	}
	m.Counts, m.ByAttempts = counts, attempts
	return nil
}

// readFinal sets the counts of jobs in final states.
func readFinal(ctx context.Context, tx pgx.Tx, counts map[job.State]int64) error {
	type row struct {
		State string
		Jobs  int64
	}
	found, err := read(ctx, tx, metricsFinalSQL, pgx.RowToStructByName[row])
	for _, row := range found {
		counts[job.State(row.State)] = row.Jobs
	}
	return err
}

func readRunning(ctx context.Context, tx pgx.Tx) (int64, error) {
	rows, err := tx.Query(ctx, metricsRunningSQL)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
}

func readByWorker(ctx context.Context, tx pgx.Tx) (map[string]map[job.State]int64, error) {
	type row struct {
		WorkerID string
		State    string
		Jobs     int64
	}
	found, err := read(ctx, tx, metricsWorkersSQL, pgx.RowToStructByName[row])
	workers := make(map[string]map[job.State]int64)
	for _, row := range found {
		if workers[row.WorkerID] == nil {
			workers[row.WorkerID] = make(map[job.State]int64)
		}
		workers[row.WorkerID][job.State(row.State)] = row.Jobs
	}
	return workers, err
}

// readAttempts counts the jobs in final states by their attempts.
func readAttempts(ctx context.Context, tx pgx.Tx) (map[int]int64, error) {
	type row struct {
		Attempt int
		Jobs    int64
	}
	found, err := read(ctx, tx, metricsAttemptsSQL, pgx.RowToStructByName[row])
	attempts := make(map[int]int64, len(found))
	for _, row := range found {
		if row.Jobs != 0 {
			attempts[row.Attempt] = row.Jobs
		}
	}
	return attempts, err
}

func readTypes(ctx context.Context, tx pgx.Tx, m *job.Metrics) error {
	type row struct {
		JobType   string
		Failures  int64
		Successes int64
		Seconds   float64
	}
	found, err := read(ctx, tx, metricsTypesSQL, pgx.RowToStructByName[row])
	m.FailuresByType, m.AverageByType = make(map[string]int64), make(map[string]time.Duration)
	for _, row := range found {
		if row.Failures > 0 {
			m.FailuresByType[row.JobType] = row.Failures
		}
		if row.Successes > 0 {
			m.AverageByType[row.JobType] = time.Duration(row.Seconds / float64(row.Successes) * float64(time.Second))
		}
	}
	return err
}

func readRecent(ctx context.Context, tx pgx.Tx, window time.Duration) (recent, error) {
	type row struct {
		Event string
		Jobs  int64
	}
	found, err := read(ctx, tx, metricsRecentSQL, pgx.RowToStructByName[row], interval(window))
	events := make(recent, len(found))
	for _, row := range found {
		events[row.Event] = row.Jobs
	}
	return events, err
}

// recent is how often each event has happened in a window.
type recent map[string]int64

func (r recent) canceled() int64 { return r["canceled"] + r["withdrawn"] }

// failed is how many attempts have: whatever dies has an attempt that failed.
func (r recent) failed() int64 { return r["failed"] + r["dead"] }

// processed is how many attempts have ended.
func (r recent) processed() int64 { return r["succeeded"] + r.failed() + r["canceled"] }

// read returns the rows of a statement.
func read[T any](ctx context.Context, from querier, sql string, row pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := from.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}
