package store

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	googleuuid "github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// Defaults of most tests: one worker, one job type, and a lease that outlasts the
// test.
const (
	worker   = "worker-1"
	other    = "worker-2"
	jobType  = "ECHO"
	aMinute  = time.Minute
	patience = 2 * time.Minute
)

// atOnce is a policy whose retries are due immediately.
var atOnce = job.RetryPolicy{Backoff: job.Immediate}

// open returns a store on a fresh database.
func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, pgtest.URL(t))
}

func openAt(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: url, MaxConnections: 20})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// connect opens a connection of its own, as another program would.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// aside returns a pool that is independent of the store's.
func aside(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// pools are the store's pools by name.
func pools(s *Store) map[string]*postgres.Pool {
	return map[string]*postgres.Pool{"worker": s.db.Worker, "submission": s.db.Submissions, "read": s.db.Reads, "heartbeat": s.db.Heartbeats}
}

func urlOf(s *Store) string { return s.db.Worker.Config().ConnString() }

// exec executes a statement, which may take as long as a busy machine needs.
func exec(t testing.TB, s *Store, sql string, args ...any) {
	t.Helper()
	conn, err := s.db.Worker.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "set statement_timeout = 0")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	_, err = conn.Exec(t.Context(), "reset statement_timeout")
	require.NoError(t, err)
}

// ask returns the single value that a query returns.
func ask[T any](t testing.TB, s *Store, sql string, args ...any) T {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return value
}

func newID(t testing.TB) job.ID {
	t.Helper()
	id, err := googleuuid.NewV7()
	require.NoError(t, err)
	return job.ID(id)
}

// submission returns a plain submission, due now, after the changes.
func submission(t testing.TB, changes ...func(*job.Submission)) job.Submission {
	t.Helper()
	s := job.Submission{
		ID: newID(t), Type: jobType, Tenant: job.DefaultTenant, Payload: json.RawMessage(`{"n": 1}`),
		MaxAttempts: 4, Timeout: 30 * time.Second,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func submissions(t testing.TB, n int, changes ...func(*job.Submission)) []job.Submission {
	t.Helper()
	all := make([]job.Submission, n)
	for i := range all {
		all[i] = submission(t, changes...)
	}
	return all
}

// claiming are the arguments of a claim for up to limit jobs.
func claiming(limit int, lease time.Duration) []any {
	return claimArguments(upTo(limit, jobType, []queueRange{everything(jobType)}), worker, limit, lease)
}

// submit stores the submissions and fails the test if one is refused.
func submit(t testing.TB, s *Store, batch ...job.Submission) []job.ID {
	t.Helper()
	ids := make([]job.ID, len(batch))
	for i, done := range s.Submit(t.Context(), batch) {
		require.NoError(t, done.Err)
		ids[i] = done.Receipt.ID
	}
	return ids
}

// given submits one plain job and returns its id.
func given(t testing.TB, s *Store, changes ...func(*job.Submission)) job.ID {
	t.Helper()
	return submit(t, s, submission(t, changes...))[0]
}

// claim takes up to limit jobs of the usual type for the usual worker.
func claim(t testing.TB, s *Store, limit int) []job.Claimed {
	t.Helper()
	claimed, err := s.Claim(t.Context(), worker, []string{jobType}, limit, aMinute)
	require.NoError(t, err)
	return claimed
}

// running submits and claims one job.
func running(t testing.TB, s *Store, changes ...func(*job.Submission)) job.Claimed {
	t.Helper()
	id := given(t, s, changes...)
	s.marks = newLowWaterMarks()
	claimed := claim(t, s, 1)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].JobID)
	return claimed[0]
}

// as returns the settlement of an attempt that ended with this outcome, as job.Decide
// decides.
func as(c job.Claimed, kind job.OutcomeKind) job.Settlement {
	at := job.History{
		Attempt: c.Attempt, MaxAttempts: c.MaxAttempts, Interruptions: c.Interruptions,
		Crashes: c.Crashes, MaxCrashes: job.DefaultMaxCrashes,
	}
	settlement := job.Settlement{
		Lease: c.Lease, Decision: job.Decide(atOnce, at, job.Outcome{Kind: kind}, 0), Number: c.Attempt,
		Plugin: "plugin", Version: "v1", SpanID: "00f067aa0ba902b7",
	}
	if kind != job.Success {
		settlement.Code, settlement.Error, settlement.Stack = "E1", "it broke", "at line 1"
	}
	return settlement
}

func settle(t testing.TB, s *Store, batch ...job.Settlement) []job.SettleResult {
	t.Helper()
	fates, err := s.Settle(t.Context(), batch)
	require.NoError(t, err)
	return fates
}

// settled settles one attempt and requires that the settlement is written.
func settled(t testing.TB, s *Store, c job.Claimed, kind job.OutcomeKind) {
	t.Helper()
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, as(c, kind)))
}

// dead submits a job and dead-letters it.
func dead(t testing.TB, s *Store) job.ID {
	t.Helper()
	c := running(t, s)
	settled(t, s, c, job.PermanentFailure)
	return c.JobID
}

// expire makes a lease look as if it had expired a second ago.
func expire(t testing.TB, s *Store, lease job.Lease) {
	t.Helper()
	exec(t, s, "update leases set expires_at = now() - interval '1 second' where lease_id = $1", postgres.UUID(lease.ID))
}

func reap(t testing.TB, s *Store, limit int) []job.Expired {
	t.Helper()
	expired, err := s.Reap(t.Context(), limit, aMinute)
	require.NoError(t, err)
	return expired
}

func get(t testing.TB, s *Store, id job.ID) job.View {
	t.Helper()
	view, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	return view
}

func requireState(t testing.TB, s *Store, id job.ID, state job.State) {
	t.Helper()
	require.Equal(t, state, get(t, s, id).State)
	requireSound(t, s)
}

// disagreement is a job whose ledger row and list row do not match.
type disagreement struct {
	ID      job.ID `db:"job_id"`
	State   string // "absent" if the ledger has no such job
	List    string // "none" if no list has it
	Differs string
}

// audit returns up to limit disagreements. Unless another program wrote to the
// database, there are none.
func audit(ctx context.Context, s *Store, limit int) (found []disagreement, err error) {
	err = pgx.BeginFunc(ctx, s.db.Worker, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, "set local enable_seqscan = on; set local enable_hashjoin = on"); err != nil {
			return err
		}
		found, err = postgres.Rows(ctx, tx, "audit", pgx.RowToStructByName[disagreement], limit)
		return err
	})
	return found, err
}

// requireSound checks that the ledger and the lists agree: first by the audit, then in
// what the audit leaves out.
func requireSound(t testing.TB, s *Store) {
	t.Helper()
	disagreements, err := audit(t.Context(), s, 10)
	require.NoError(t, err)
	require.Empty(t, disagreements)
	require.Zero(t, ask[int](t, s, `
		select count(*) from job_attempts a left join jobs j using (job_id)
		where j.job_id is null or a.fence > j.fence`), "attempts that disagree with the ledger")
}

// row returns a job's whole ledger row, for comparison.
func row(t testing.TB, s *Store, id job.ID) string {
	t.Helper()
	return ask[string](t, s, `
		select concat_ws(E'\n', j::text, r::text, l::text, t::text, d::text,
			(select array_agg(a order by fence)::text from job_attempts a where a.job_id = j.job_id))
		from jobs j
		left join ready r using (job_id) left join leases l using (job_id)
		left join timers t using (job_id) left join dead_letters d using (job_id)
		where j.job_id = $1`, postgres.UUID(id))
}

// locked runs sql in a transaction of another connection and returns a function that
// ends the transaction.
func locked(t testing.TB, s *Store, sql string, args ...any) (commit func()) {
	t.Helper()
	conn := connect(t, urlOf(s))
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	return func() {
		t.Helper()
		require.NoError(t, tx.Commit(t.Context()))
	}
}

// awaitBlocked returns once n backends of the database wait for a lock.
func awaitBlocked(t testing.TB, s *Store, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return ask[int](t, s, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) >= n
	}, patience, 2*time.Millisecond, "%d backends waiting for a lock", n)
}

// after starts f and returns a function that waits for its result.
func after[T any](f func() T) (wait func() T) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	return func() T { return <-done }
}

// loops returns a function that repeats another until the end, in a goroutine of its own. An
// error fails the test. end stops all of them and waits; it may be called more than once.
func loops(t testing.TB) (repeat func(f func() error), end func()) {
	t.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	repeat = func(f func() error) {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := f(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	return repeat, sync.OnceFunc(func() { close(stop); running.Wait() })
}
