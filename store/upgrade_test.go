package store

import (
	"database/sql"
	"os"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrations go through
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// beforeGates is the version of the schema before jobs could have gates.
const beforeGates = 8

// versions migrates a database to any version.
func versions(t testing.TB, url string) (*goose.Provider, *sql.DB) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("../migrations"))
	require.NoError(t, err)
	return provider, db
}

// Jobs from before the upgrade have no gates, and are worked off like new ones.
func TestJobsFromBeforeGatesAreWorkedOff(t *testing.T) {
	url := pgtest.EmptyURL(t)
	provider, db := versions(t, url)
	_, err := provider.UpTo(t.Context(), beforeGates)
	require.NoError(t, err)
	earlier := openAt(t, url)
	for _, state := range []job.State{job.Queued, job.Running, job.Created, job.Retry, job.Dead} {
		fill(t, earlier, state, 3, jobType)
		exec(t, earlier, "update jobs set job_type = $2 where job_type = $1", jobType, string(state))
	}
	exec(t, earlier, "update ready set job_type = $1", string(job.Queued))
	exec(t, earlier, "update timers set job_type = state::text")
	exec(t, earlier, "update dead_letters set job_type = $1", string(job.Dead))
	exec(t, earlier, "update jobs set run_at = 'infinity' where job_type = $1", string(job.Created))
	exec(t, earlier, "update timers set run_at = 'infinity' where job_type = $1", string(job.Created))
	exec(t, earlier, "update dead_letters d set dead_at = j.finished_at from jobs j where j.job_id = d.job_id")
	var held []job.ID
	for range 3 {
		held = append(held, ask[job.ID](t, earlier,
			"select job_id from jobs where job_type = $1 order by job_id offset $2 limit 1", string(job.Created), len(held)))
	}
	earlier.Close()

	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	s := openAt(t, url)
	requireSound(t, s)
	exec(t, s, "update leases set expires_at = now() - interval '1 second'")
	for _, expired := range reap(t, s, 10) {
		require.False(t, expired.Gated)
		c := job.Claimed{Lease: expired.Lease, Attempt: expired.Attempt, MaxAttempts: expired.MaxAttempts}
		settled(t, s, c, job.Interrupted)
	}
	for _, id := range held {
		_, err := s.Release(t.Context(), id)
		require.NoError(t, err)
	}
	require.Equal(t, 3, promote(t, s, 10))
	requeued, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, requeued, 3)
	requireSound(t, s)
	types := []string{string(job.Queued), string(job.Running), string(job.Created), string(job.Retry), string(job.Dead)}
	claimed, err := s.Claim(t.Context(), worker, types, 100, aMinute)
	require.NoError(t, err)
	require.Len(t, claimed, 15)
	for _, c := range claimed {
		settled(t, s, c, job.Success)
	}
	require.Equal(t, 15, ask[int](t, s, "select count(*) from jobs where state = 'succeeded'"))
	require.Zero(t, ask[int](t, s, "select count(*) from parked")+ask[int](t, s, "select count(*) from wakes"))
	requireSound(t, s)
}

// After a downgrade, jobs with gates are queued like all others.
func TestADowngradeQueuesWhatIsParked(t *testing.T) {
	url := pgtest.URL(t)
	provider, db := versions(t, url)
	s := openAt(t, url)
	hourAgo := func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour).Truncate(time.Microsecond) }
	admittedRunning(t, s, gated(keyGate))
	given(t, s, gated(fairGate, keyGate), hourAgo)
	exec(t, s, "update parked set turn = true, position = '2001-02-03'")
	require.NoError(t, admit(t.Context(), s))
	given(t, s, gated(fairGate, keyGate), hourAgo)
	exec(t, s, "update parked set turn = true, position = '2001-02-03'")
	given(t, s, gated(keyGate), func(j *job.Submission) { j.Delay = time.Hour })
	failed := given(t, s, gated(keyGate), func(j *job.Submission) { j.Priority = 9 })
	exec(t, s, "update jobs set attempt = 2 where job_id = $1", postgres.UUID(failed))
	exec(t, s, "update parked set attempt = 2 where job_id = $1", postgres.UUID(failed))
	requireSound(t, s)
	s.Close()

	_, err := provider.DownTo(t.Context(), beforeGates)
	require.NoError(t, err)
	earlier := openAt(t, url)
	require.Equal(t, 3, ask[int](t, earlier, `select count(*) from ready r join jobs j on j.job_id = r.job_id
		and j.job_type = r.job_type and -j.priority = r.urgency and j.run_at = r.run_at and j.attempt = r.attempt and j.state = 'queued'`))
	require.Equal(t, 3, ask[int](t, earlier, "select count(*) from ready"))
	earlier.Close()

	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	s = openAt(t, url)
	requireSound(t, s)
	pass(t, s, 2*time.Hour)
	require.Equal(t, 1, promote(t, s, 10))
	require.Len(t, claim(t, s, 10), 4)
	requireSound(t, s)
}
