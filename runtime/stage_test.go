package runtime_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	googleuuid "github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

const (
	// patience is for what happens soon; only a broken test waits it out.
	patience = 2 * time.Minute
	tick     = 5 * time.Millisecond
	// aLongTime is a period or delay that no test waits out.
	aLongTime = time.Hour

	echo = "ECHO" // the type of most jobs
)

// database is a fresh one: as the runtime sees it, and as the test does.
type database struct {
	*store.Store
	url  string
	pool *pgxpool.Pool
}

func fresh(t testing.TB) *database {
	t.Helper()
	url := pgtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return &database{Store: openAt(t, url), url: url, pool: pool}
}

func openAt(t testing.TB, url string) *store.Store {
	t.Helper()
	return storetest.Open(t, url, 4)
}

// expiries has a row for each lease: when it expires, if it is not renewed.
const expiries = `(select l.job_id, l.lease_id, case when l.kept then w.alive_until else l.expires_at end as at
	from leases l left join workers w on w.worker_id = l.worker_id) expiries`

// ask returns the only value of the only row.
func ask[T any](t testing.TB, db *database, sql string, args ...any) T {
	t.Helper()
	rows, err := db.pool.Query(context.WithoutCancel(t.Context()), sql, args...)
	require.NoError(t, err, sql)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return value
}

func uuid(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// process is a Runtime that runs.
type process struct {
	*runtime.Runtime
	worker job.Worker
	drain  context.CancelFunc
	abort  context.CancelFunc
	ended  chan struct{}
}

// launch runs a worker until the end of the test. Unless changed, its leases
// last long enough for a busy machine, it polls often and retries at once.
func launch(t testing.TB, s runtime.Store, h runtime.Plugins, changes ...func(*runtime.Config)) *process {
	t.Helper()
	cfg := runtime.Config{
		Config: jobs.Config{
			PollInterval: 100 * time.Millisecond, Resolve: retrying(job.RetryPolicy{Backoff: job.Immediate}),
			Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
		},
		Worker: runtime.NewWorker("test", job.AllRoles()), Concurrency: 100, Lease: 10 * time.Second,
		DrainTimeout: aLongTime, KillGrace: 100 * time.Millisecond, JobLog: runtime.LogSampled,
		CrashPolicy: runtime.Release, MaxCrashes: func(string) int { return job.DefaultMaxCrashes },
	}
	for _, change := range changes {
		change(&cfg)
	}
	r, err := runtime.New(cfg, s, h)
	require.NoError(t, err)
	require.NoError(t, r.Prepare(t.Context()))
	p := &process{Runtime: r, worker: cfg.Worker, ended: make(chan struct{})}
	ctx, drain := context.WithCancel(context.Background())
	abort, endAll := context.WithCancel(context.Background())
	p.drain, p.abort = drain, endAll
	go func() {
		defer close(p.ended)
		r.Run(ctx, abort)
	}()
	t.Cleanup(func() {
		p.drain()
		p.abort()
		p.awaitEnd(t)
	})
	return p
}

// JobsReady announces jobs that were stored behind the worker's back.
func (p *process) JobsReady() { p.Hints.Announce(job.JobsReady) }

// CancelAsked makes workers beat at once.
func (p *process) CancelAsked() { p.Hints.Announce(job.CancelAsked) }

// awaitEnd returns once Run has.
func (p *process) awaitEnd(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.Fail(t, "the worker does not end")
	}
}

// retrying resolves every type to this policy.
func retrying(policy job.RetryPolicy) func(job.TypeSpec) job.TypeSpec {
	return func(spec job.TypeSpec) job.TypeSpec {
		spec.Retry, spec.MaxAttempts, spec.Timeout = policy, job.DefaultMaxAttempts, job.DefaultTimeout
		return spec
	}
}

// waiting is a fixed delay between attempts.
func waiting(delay time.Duration) func(*runtime.Config) {
	policy := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: delay, JitterMin: 1, JitterMax: 1}
	return func(c *runtime.Config) { c.Resolve = retrying(policy) }
}

func leasing(lease time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.Lease = lease }
}

func polling(every time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.PollInterval = every }
}

func graceful(kill time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.KillGrace = kill }
}

// submission is a plain one, due now, with the changes made to it.
func submission(t testing.TB, changes ...func(*job.Submission)) job.Submission {
	t.Helper()
	id, err := googleuuid.NewV7()
	require.NoError(t, err)
	s := job.Submission{
		ID: job.ID(id), Type: echo, Tenant: job.DefaultTenant, Payload: []byte(`{"n": 1}`),
		MaxAttempts: 4, Timeout: aLongTime,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// submitted is the id of a plain job that the process has accepted, with the changes made to it.
func submitted(t testing.TB, p *process, changes ...func(*job.Submission)) job.ID {
	t.Helper()
	receipt, err := p.Submit(t.Context(), submission(t, changes...))
	require.NoError(t, err)
	return receipt.ID
}

// given stores a job behind the back of every Runtime.
func given(t testing.TB, db *database, changes ...func(*job.Submission)) job.ID {
	t.Helper()
	return many(t, db, 1, changes...)[0]
}

func many(t testing.TB, db *database, n int, changes ...func(*job.Submission)) []job.ID {
	t.Helper()
	batch := make([]job.Submission, n)
	for i := range batch {
		batch[i] = submission(t, changes...)
	}
	ids := make([]job.ID, n)
	for i, submitted := range db.Submit(t.Context(), batch) {
		require.NoError(t, submitted.Err)
		ids[i] = submitted.Receipt.ID
	}
	return ids
}

func ofType(jobType string) func(*job.Submission) {
	return func(s *job.Submission) { s.Type = jobType }
}

func atMost(attempts int) func(*job.Submission) {
	return func(s *job.Submission) { s.MaxAttempts = attempts }
}

// openConnections makes the pools start their goroutines before a test counts
// what is left over.
func (db *database) openConnections(t testing.TB) {
	t.Helper()
	require.NoError(t, db.Ping(t.Context()))
	_, err := db.Renew(t.Context(), "nobody", nil, nil, time.Second)
	require.NoError(t, err)
	require.Equal(t, 1, ask[int](t, db, "select 1"))
}
