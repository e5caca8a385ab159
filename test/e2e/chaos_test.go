package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func TestAThousandFailingJobsDieAfterThreeAttemptsEach(t *testing.T) {
	url := pgtest.URL(t)
	o := orchestrator(t, url, plugin(0, "builtin", "handlers")...)
	rigtest.Start(t, o)
	const jobs = 1000
	submitAll(t, jobs, o, func(int) (*rig.Orchestrator, rig.Submission) {
		return o, rig.Submission{JobType: "FAIL_JOB", MaxAttempts: 3, Payload: map[string]any{"message": "as asked"}}
	})

	db := pool(t, url)
	awaitEnd(t, db)
	require.Equal(t, jobs, count(t, db, `select count(*) from jobs where state = 'dead' and attempt = 3`))
	require.Equal(t, jobs, count(t, db, `select count(*) from dead_letters`))
	require.Equal(t, 3*jobs, count(t, db, `select count(*) from job_attempts where outcome = 'failed'`))
	require.Zero(t, count(t, db, `select count(*) from (
		select job_id from job_attempts group by job_id having count(*) <> 3 or max(fence) <> 3) odd`))
	require.NoError(t, o.ShutDown(t.Context()))
}

// A kind is a kind of job in the storm, and how it must end.
type kind struct {
	work        map[string]any
	maxAttempts int
	ends        string
}

var kinds = []kind{
	{map[string]any{"millis": 2}, 10, "succeeded"},
	{map[string]any{"millis": 100, "firstMillis": 400}, 10, "succeeded"},
	{map[string]any{"millis": 1, "failFirst": 1}, 10, "succeeded"},
	{map[string]any{"error": "doomed"}, 2, "dead"},
}

func TestNothingIsLostWhenOrchestratorsAndHandlersAreKilled(t *testing.T) {
	const jobs = 5000
	random := rigtest.Seeded(t)

	url := pgtest.URL(t)
	effects := filepath.Join(t.TempDir(), "effects")
	settings := plugin(0, "storm", "testhandlers", "EFFECTS="+effects)
	// The jobs are not to blame for the kills, even if several kills hit the same job.
	settings = append(settings, "plugins.0.processes=2", "jobs.default.max_crashes=10")
	one := orchestrator(t, url, append(settings, "worker.id=one")...)
	two := orchestrator(t, url, append(settings, "worker.id=two")...)
	rigtest.Start(t, one)
	rigtest.Start(t, two)
	db := pool(t, url)

	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		submitAll(t, jobs, two, func(i int) (*rig.Orchestrator, rig.Submission) {
			k := kinds[i%len(kinds)]
			return []*rig.Orchestrator{one, two}[i%2], rig.Submission{
				JobType: "WORK", Payload: k.work, MaxAttempts: k.maxAttempts,
				IdempotencyKey: fmt.Sprintf("%d-%d", i%len(kinds), i),
			}
		})
	}()
	// Three plugin processes and one orchestrator are killed while jobs run.
	for kill := range 3 {
		awaitCount(t, db, `select count(*) from jobs where finished_at is not null`, (kill+1)*jobs/10)
		one.Look()
		two.Look()
		// The process of an isolated suspect may end before the kill.
		require.Eventually(t, func() bool {
			victims := append(one.Handlers("testhandlers"), two.Handlers("testhandlers")...)
			return len(victims) > 0 && victims[random.IntN(len(victims))].Signal(syscall.SIGKILL) == nil
		}, patience, glance, "a handler process is killed")
	}
	awaitCount(t, db, `select count(*) from jobs where finished_at is not null`, jobs/2)
	awaitCount(t, db, `select count(*) from leases where worker_id like 'one/%'`, 10)
	require.NoError(t, one.Kill())
	<-accepted
	awaitEnd(t, db)

	require.Equal(t, jobs, count(t, db, `select count(*) from jobs`))
	for i, k := range kinds {
		require.Equal(t, jobs/len(kinds), count(t, db,
			`select count(*) from jobs where state = $1::job_state and idempotency_key like $2`, k.ends, fmt.Sprintf("%d-%%", i)),
			"jobs of kind %d that ended %s", i, k.ends)
	}
	noStaleOwnerSettled(t, db)
	everySuccessHadItsEffect(t, db, effects)
	seriesAgrees(t, db, url)
	checks, err := ledger(t, url).Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ledger_and_lists", checks[0].Name)
	require.Equal(t, job.Fine, checks[0].Severity, checks[0].Details)
	for _, hit := range []string{"crashed suspected", "interrupted"} {
		require.NotZero(t, count(t, db, `select count(*) from job_attempts where outcome::text = any (string_to_array($1, ' '))`, hit),
			"nothing was %s: the kills hit nothing, and the test has shown nothing", hit)
	}
	require.NoError(t, two.ShutDown(t.Context()))
}

// noStaleOwnerSettled checks that every claim of a job ended in exactly one attempt
// row, that no attempt followed a final state, and that no more attempts were charged
// than allowed.
func noStaleOwnerSettled(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	require.Zero(t, count(t, db, `select count(*) from jobs j where j.fence <> (
		select count(*) from job_attempts a where a.job_id = j.job_id)`), "claims without exactly one end")
	require.Zero(t, count(t, db, `select count(*) from jobs j join job_attempts a using (job_id)
		where a.fence > j.fence or (a.outcome = 'succeeded') <> (j.state = 'succeeded' and a.fence = j.fence)`),
		"attempts that succeeded, but not as the last one of a job that succeeded")
	require.Zero(t, count(t, db, `select count(*) from job_attempts a join job_attempts b
		on b.job_id = a.job_id and b.fence = a.fence + 1 where b.claimed_at < a.ended_at`), "attempts that overlap")
	require.Zero(t, count(t, db, `select count(*) from jobs j where j.attempt > j.max_attempts`))
	require.Zero(t, count(t, db, `select count(*) from (
		select job_id from job_attempts where outcome in ('failed', 'crashed', 'timeout', 'lease_expired')
		group by job_id having count(*) > (select max_attempts from jobs j where j.job_id = job_attempts.job_id)) over_the_limit`))
}

// effect is one attempt whose handler finished.
type effect struct {
	fence       int64
	began, done int64 // nanoseconds since 1970
}

func readEffects(t *testing.T, path string) map[string][]effect {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	effects := make(map[string][]effect)
	for line := range strings.Lines(string(text)) {
		var id string
		var e effect
		_, err := fmt.Sscanf(line, "%s %d %d %d", &id, &e.fence, &e.began, &e.done)
		require.NoError(t, err, line)
		effects[id] = append(effects[id], e)
	}
	return effects
}

// everySuccessHadItsEffect checks that a job succeeded under a fence only if its
// handler finished under that fence, and that no handler was still running a job when
// the next attempt began.
func everySuccessHadItsEffect(t *testing.T, db *pgxpool.Pool, path string) {
	t.Helper()
	effects := readEffects(t, path)
	for id, ofJob := range effects {
		slices.SortFunc(ofJob, func(a, b effect) int { return cmp.Compare(a.fence, b.fence) })
		for i := 1; i < len(ofJob); i++ {
			require.GreaterOrEqual(t, ofJob[i].began, ofJob[i-1].done, "attempts at job %s overlap", id)
		}
	}
	rows, err := db.Query(t.Context(), `select job_id::text, fence from job_attempts where outcome = 'succeeded'`)
	require.NoError(t, err)
	type success struct {
		JobID string
		Fence int64
	}
	successes, err := pgx.CollectRows(rows, pgx.RowToStructByName[success])
	require.NoError(t, err)
	for _, s := range successes {
		require.True(t, slices.ContainsFunc(effects[s.JobID], func(e effect) bool { return e.fence == s.Fence }),
			"job %s succeeded under fence %d without its effect", s.JobID, s.Fence)
	}
}

// submitAll submits from a few clients at once. A submission without an answer is sent
// again to another server, under the same key.
func submitAll(t *testing.T, jobs int, elsewhere *rig.Orchestrator, one func(i int) (*rig.Orchestrator, rig.Submission)) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	clients, ctx := errgroup.WithContext(ctx)
	clients.SetLimit(16)
	for i := range jobs {
		clients.Go(func() error {
			o, submission := one(i)
			if _, err := o.Submit(ctx, submission); err == nil {
				return nil
			}
			_, err := elsewhere.Submit(ctx, submission)
			return err
		})
	}
	if err := clients.Wait(); err != nil {
		t.Errorf("submit: %v", err)
	}
}

func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

func count(t testing.TB, db *pgxpool.Pool, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, db.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

func awaitCount(t *testing.T, db *pgxpool.Pool, query string, atLeast int) {
	t.Helper()
	require.Eventually(t, func() bool { return count(t, db, query) >= atLeast }, patience, 20*time.Millisecond, query)
}

// awaitEnd waits until every job is in a final state.
func awaitEnd(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, db, `select count(*) from jobs where finished_at is null`) == 0
	}, patience, 50*time.Millisecond, "jobs that have not ended")
}

// seriesAgrees compares what has been tallied with the ledger, after the kills.
func seriesAgrees(t *testing.T, db *pgxpool.Pool, url string) {
	t.Helper()
	series, err := ledger(t, url).Series(t.Context(), v1.Hour, "")
	require.NoError(t, err)
	var submitted, succeeded, dead, canceled int64
	for _, slot := range series.Slots {
		submitted += slot.Submitted
		succeeded += slot.Succeeded
		dead += slot.Dead
		canceled += slot.Canceled
	}
	for state, tallied := range map[string]int64{"succeeded": succeeded, "dead": dead, "canceled": canceled} {
		require.EqualValues(t, count(t, db, `select count(*) from jobs where state = $1::job_state`, state), tallied, state)
	}
	require.EqualValues(t, count(t, db, `select count(*) from jobs`), submitted)
	require.Zero(t, series.Slots[len(series.Slots)-1].Open)
}
