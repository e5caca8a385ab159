package store

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// figures are the metrics of the current moment.
func figures(t testing.TB, s *Store, window time.Duration) v1.Metrics {
	t.Helper()
	m, err := s.Metrics(t.Context(), window)
	require.NoError(t, err)
	m.Queues = nil
	return m
}

func rollUp(t testing.TB, s *Store) int {
	t.Helper()
	n, err := s.RollUpTallies(t.Context(), 1000)
	require.NoError(t, err)
	return n
}

// eventful is a ledger in which every event has happened once.
func eventful(t testing.TB) *Store {
	t.Helper()
	s := open(t)
	for _, state := range job.States() {
		inState(t, s, state)
	}
	waiting := given(t, s)
	_, err := s.Cancel(t.Context(), waiting)
	require.NoError(t, err)
	buried := dead(t, s)
	_, err = s.Requeue(t.Context(), buried)
	require.NoError(t, err)
	return s
}

func TestFiguresAreTheSameBeforeAndAfterARollUp(t *testing.T) {
	s := eventful(t)
	before := figures(t, s, time.Hour)
	require.Equal(t, map[job.State]int64{
		job.Created: 1, job.Queued: 2, job.Running: 1, job.Retry: 1, job.Succeeded: 1, job.Dead: 1, job.Canceled: 2,
	}, before.StatusCounts)
	require.Equal(t, map[int]int64{0: 4, 1: 5}, before.AttemptDistribution)
	require.Equal(t, map[string]map[job.State]int64{
		worker: {job.Running: 1, job.Succeeded: 1, job.Dead: 2, job.Canceled: 1},
	}, before.ByWorker)
	require.Equal(t, v1.Recent{SinceMinutes: 60, Submitted: 9, Succeeded: 1, Dead: 2, Canceled: 2, FailedAttempts: 3, Requeued: 1}, before.Recent)
	require.EqualValues(t, 5, before.ProcessedLastMinute)
	require.Len(t, before.FailuresByJobType, 3)
	for _, failures := range before.FailuresByJobType {
		require.EqualValues(t, 1, failures)
	}
	require.Len(t, before.AvgDurationSecondsByJobType, 1)

	for range 2 {
		require.NotZero(t, rollUp(t, s))
		require.Zero(t, ask[int](t, s, "select count(*) from tallies"))
		after := figures(t, s, time.Hour)
		after.At, after.OldestSnapshotSeconds, after.SnapshotAgeTransactions = before.At, before.OldestSnapshotSeconds, before.SnapshotAgeTransactions
		require.Equal(t, before, after)
		exec(t, s, "insert into tallies select slot, job_type, '', event, 0, 0, 0 from tally_slots") // adds nothing
	}
}

func TestWindowsSeeWhatHappenedInThem(t *testing.T) {
	s := eventful(t)
	rollUp(t, s)
	exec(t, s, "update tally_slots set slot = slot - interval '10 minutes'")
	require.Equal(t, v1.Recent{SinceMinutes: 5}, figures(t, s, 5*time.Minute).Recent)
	require.Zero(t, figures(t, s, 5*time.Minute).ProcessedLastMinute)
	require.EqualValues(t, 9, figures(t, s, 15*time.Minute).Recent.Submitted)

	within, err := s.WorkerTotals(t.Context(), 5*time.Minute)
	require.NoError(t, err)
	require.Equal(t, map[job.State]int64{job.Running: 1, job.Succeeded: 0, job.Dead: 0, job.Canceled: 0}, within)
	ever, err := s.WorkerTotals(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, map[job.State]int64{job.Running: 1, job.Succeeded: 1, job.Dead: 1, job.Canceled: 2}, ever)
}

func TestSlotsAreMergedAndDeleted(t *testing.T) {
	s := open(t)
	exec(t, s, `insert into tally_slots select date_trunc('minute', now()) - interval '20 minutes' + i * interval '10 seconds', 'A', 'succeeded', 1
		from generate_series(0, 11) i`)
	exec(t, s, "insert into tally_slots values (now() - interval '26 hours', 'A', 'succeeded', 1), (now(), 'A', 'succeeded', 1)")
	exec(t, s, "insert into tally_workers values ('forgotten', 'succeeded', 1), ('known', 'succeeded', 1)")
	enlist(t, s, job.Worker{ID: "known"}, time.Minute)
	require.NoError(t, s.AgeTallies(t.Context()))
	require.Equal(t, []int64{6, 6, 1}, ask[[]int64](t, s, "select array_agg(jobs order by slot) from tally_slots"))
	require.Equal(t, []string{"known"}, ask[[]string](t, s, "select array_agg(worker_id) from tally_workers"))
}

func TestManyRollUpAtOnceAndCountOnce(t *testing.T) {
	s := open(t)
	exec(t, s, "insert into tallies select now(), 'T' || i % 7, 'w', 'succeeded', i % 3, 1, 0.5 from generate_series(1, 5000) i")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 60 {
				_, err := s.RollUpTallies(t.Context(), 100)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for rollUp(t, s) > 0 {
		continue
	}
	require.Equal(t, 5000, ask[int](t, s, "select sum(jobs)::int from tally_totals"))
	require.Equal(t, 5000, ask[int](t, s, "select sum(jobs)::int from tally_workers"))
	require.Equal(t, 5000, ask[int](t, s, "select sum(jobs)::int from tally_attempts"))
	require.EqualValues(t, 5000, figures(t, s, time.Hour).StatusCounts[job.Succeeded])
}

// Statistics must not lead a planner that may scan to read the whole ledger.
func TestFiguresNeverReadTheLedgerWhole(t *testing.T) {
	s := open(t)
	fill(t, s, job.Succeeded, 20_000, "DONE")
	fill(t, s, job.Running, 2000, "BUSY")
	fill(t, s, job.Retry, 2000, "LATER")
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			exec(t, s, "analyze")
		}
		files, err := filepath.Glob("sql/metrics_*.sql")
		require.NoError(t, err)
		for _, file := range append(files, "sql/open_jobs.sql") {
			name := strings.TrimSuffix(filepath.Base(file), ".sql")
			var plan string
			require.NoError(t, s.figures(t.Context(), "test", func(tx pgx.Tx) error {
				plan = explainOn(t, tx.Conn(), sql.Text(name), "costs off")
				return nil
			}))
			require.NotContains(t, plan, "Seq Scan on jobs", "%s, analyzed: %v\n%s", name, analyzed, plan)
			require.NotContains(t, plan, "job_attempts", name)
			require.NotContains(t, plan, "Gather", "%s\n%s", name, plan)
		}
	}
}

func TestMetricsThatTakeTooLongReturnWhatIsKnown(t *testing.T) {
	s := eventful(t)
	for table, known := range map[string]struct{ counts, queues bool }{
		"workers": {counts: true},
		"timers":  {},
	} {
		t.Run(table, func(t *testing.T) {
			unlock := locked(t, s, "lock table "+table+" in access exclusive mode")
			defer unlock()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // in which a busy machine counts the jobs
			defer cancel()
			m, err := s.Metrics(ctx, time.Hour)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotZero(t, m.At)
			require.Equal(t, known.counts, m.StatusCounts != nil)
			require.Equal(t, known.queues, m.Queues != nil)
		})
	}
	m, err := s.Metrics(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Len(t, m.StatusCounts, len(job.States()), "a state without jobs is listed")
	require.NotNil(t, m.Queues)
}

func TestAReleasedClaimKeepsItsAttempts(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s), job.Failure)
	require.Equal(t, map[int]int64{1: 1}, figures(t, s, time.Hour).AttemptDistribution)
	_, err := s.Promote(t.Context(), 1)
	require.NoError(t, err)
	again := claim(t, s, 1)
	require.Len(t, again, 1)
	require.Equal(t, map[int]int64{2: 1}, figures(t, s, time.Hour).AttemptDistribution)
	settled(t, s, again[0], job.Released)
	require.Equal(t, map[int]int64{1: 1}, figures(t, s, time.Hour).AttemptDistribution)
}

func TestDurationsAddUpOverRollUps(t *testing.T) {
	s := open(t)
	for seconds := range 3 {
		exec(t, s, "insert into tallies values (now(), 'T', 'w', 'succeeded', 1, 1, $1)", 2*seconds)
		rollUp(t, s)
	}
	require.InDelta(t, 2, figures(t, s, time.Hour).AvgDurationSecondsByJobType["T"], 1e-9)
}

func TestAnOldSnapshotIsSeen(t *testing.T) {
	s := open(t)
	tx, err := s.db.Worker.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), "set transaction isolation level repeatable read; select 1")
	require.NoError(t, err)
	given(t, s)
	m := figures(t, s, time.Minute)
	require.Positive(t, m.OldestSnapshotSeconds)
	require.Positive(t, m.SnapshotAgeTransactions)
}
