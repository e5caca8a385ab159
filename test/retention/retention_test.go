// Package retention tests that a large past is deleted while jobs are worked: a real
// orchestrator deletes, and the test itself submits and works jobs at a steady rate.
//
// HOLDFAST_TEST_RETENTION=full makes the tests long, and lets them judge speeds as well.
// HOLDFAST_TEST_RETENTION_JOBS, _RATE and _SECONDS set the length by hand.
package retention

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// full says that the test runs at full length and judges speeds.
var full = os.Getenv("HOLDFAST_TEST_RETENTION") == "full"

var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/retention", "../../cmd/orchestrator"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// length is a number from the environment, or else one for short tests or for long ones.
func length(t *testing.T, name string, short, long int) int {
	t.Helper()
	if text := os.Getenv("HOLDFAST_TEST_RETENTION_" + name); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	if full {
		return long
	}
	return short
}

const (
	batch = 500
	// portionWithin is how long one statement of the deleter may take: a bound of a bucket of
	// the metric.
	portionWithin = "0.1"
	// slowdown is by how much deleting may slow down the work.
	slowdown = 0.1
)

func TestAPastIsDeletedWhileJobsAreWorked(t *testing.T) {
	jobs, rate := length(t, "JOBS", 20_000, 10_000_000), length(t, "RATE", 2000, 10_000)
	baseline := time.Duration(length(t, "SECONDS", 3, 60)) * time.Second
	url := pgtest.URL(t)
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	fillPast(t, db, jobs)
	filled := size(t, db)

	directory := t.TempDir()
	configure := func(retention string) {
		require.NoError(t, os.WriteFile(filepath.Join(directory, "config.yaml"), []byte("plugins: []\n"+retention), 0o600))
	}
	configure("")
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), directory, "database.url="+url, "worker.id=deleter", "log.format=json")
	rigtest.Start(t, o)
	w := beginWork(t, url, rate)
	w.during(baseline / 10) // connections and plans are made
	before := w.during(baseline)

	configure("retention: {succeeded: 1h}\n")
	require.NoError(t, o.Signal(syscall.SIGHUP))
	began, worked := time.Now(), w.worked.Load()
	require.Eventually(t, func() bool {
		return count(t, db, `select count(*) from (select from jobs where job_type = 'PAST' limit 1) left_over`) == 0
	}, time.Hour, 100*time.Millisecond, "the past goes")
	took := time.Since(began)
	meanwhile := float64(w.worked.Load()-worked) / took.Seconds()
	after := w.during(baseline)

	_, err = db.Exec(t.Context(), "vacuum analyze jobs")
	require.NoError(t, err)
	emptied := size(t, db)
	workMore := func() int {
		target := w.worked.Load() + int64(jobs/10)
		require.Eventually(t, func() bool { return w.worked.Load() >= target }, time.Hour, 100*time.Millisecond)
		return size(t, db)
	}
	grown := workMore()
	// On a busy machine a snapshot that is still open may keep the vacuum from freeing the space.
	for tries := 1; !full && tries < 10 && float64(grown) >= 1.02*float64(emptied); tries++ {
		_, err = db.Exec(t.Context(), "vacuum analyze jobs")
		require.NoError(t, err)
		emptied = size(t, db)
		grown = workMore()
	}
	w.end()

	slow, portions := portions(t, o)
	t.Logf("%d jobs deleted in %s, %.0f a second, in %d statements, of which %d took more than %s s",
		jobs, took.Round(time.Second/10), float64(jobs)/took.Seconds(), portions, slow, portionWithin)
	t.Logf("jobs worked a second: %.0f before, %.0f meanwhile, %.0f after", before, meanwhile, after)
	t.Logf("the ledger: %d MB full, %d MB when the past was gone, %d MB %d jobs later", filled>>20, emptied>>20, grown>>20, jobs/10)
	require.Zero(t, count(t, db, `select count(*) from unsuccessful_attempts`)+count(t, db, `select count(*) from attempt_logs`), "attempts and logs go too")
	require.Equal(t, int(w.worked.Load()), count(t, db, `select count(*) from jobs where state = 'succeeded'`), "nothing else goes")
	require.Less(t, float64(grown), 1.02*float64(emptied), "the space is used again")
	if full {
		require.Zero(t, slow)
		require.Greater(t, meanwhile, (1-slowdown)*(before+after)/2)
	}
}

// fillPast writes jobs that ended days ago. One in fifty has had an attempt that failed, with
// a log.
func fillPast(t *testing.T, db *pgxpool.Pool, jobs int) {
	t.Helper()
	const chunk = 100_000
	for first := 0; first < jobs; first += chunk {
		tx, err := db.Begin(t.Context())
		require.NoError(t, err)
		for _, text := range []string{
			"set local session_replication_role = replica", // so that no trigger refuses them
			fmt.Sprintf(`
			insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
				max_attempts, timeout, created_at, state, run_at, attempt, fence, worker_id, started_at, finished_at, lease_id, plugin, plugin_version, span_id)
			select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(i), 15, '0'))::uuid,
				'default', 'PAST', 0, decode(md5(i::text) || md5(i::text), 'hex'), '{"to": "somebody@example.com", "subject": "Welcome"}', '{}',
				'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '', 4, '30 seconds', at, 'succeeded', at, 1, 2, 'w', at, at + interval '1 second',
				gen_random_uuid(), 'builtin', 'v1.0.0', 'b7ad6b7169203331'
			from (select i, now() - interval '10 days' + i * interval '1 millisecond' as at from generate_series(%d, %d) i) past`, first, min(first+chunk, jobs)-1),
		} {
			_, err := tx.Exec(t.Context(), text)
			require.NoError(t, err)
		}
		require.NoError(t, tx.Commit(t.Context()))
	}
	for _, text := range []string{
		`insert into unsuccessful_attempts (job_id, fence, attempt, lease_id, worker_id, claimed_at, ended_at, outcome, error)
			select job_id, 1, 1, gen_random_uuid(), 'w', now(), now(), 'failed', 'SMTP: 451 try again later' from jobs where right(job_id::text, 2) in ('00', '80', '40', 'c0', 'a0')`,
		`insert into attempt_logs (job_id, fence, attempt, lines, dropped) select job_id, fence, attempt, '[]', 0 from unsuccessful_attempts`,
		"vacuum analyze",
	} {
		_, err := db.Exec(t.Context(), text)
		require.NoError(t, err)
	}
}

func count(t *testing.T, db *pgxpool.Pool, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), query).Scan(&n))
	return n
}

// size is that of the ledger with its indexes, in bytes.
func size(t *testing.T, db *pgxpool.Pool) int {
	t.Helper()
	return count(t, db, "select pg_total_relation_size('jobs')")
}

// work submits jobs at a steady rate, and works them as fast as they come.
type work struct {
	worked atomic.Int64
	end    func()
}

func beginWork(t *testing.T, url string, rate int) *work {
	t.Helper()
	ledger := storetest.Open(t, url, 8)
	const name = "the test"
	require.NoError(t, ledger.RegisterWorker(t.Context(), job.Worker{ID: name, Roles: job.AllRoles()}, time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	w := &work{}
	var loops sync.WaitGroup
	loops.Go(func() {
		pace := time.NewTicker(time.Duration(batch) * time.Second / time.Duration(rate))
		defer pace.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
			for _, done := range ledger.Submit(context.WithoutCancel(ctx), submissions()) {
				if done.Err != nil {
					t.Error(done.Err)
					cancel()
				}
			}
		}
	})
	loops.Go(func() {
		for idle := false; !idle || ctx.Err() == nil; {
			claimed, err := ledger.Claim(context.WithoutCancel(ctx), name, []string{"WORK"}, batch, time.Hour)
			if err == nil && len(claimed) > 0 {
				_, err = ledger.Settle(context.WithoutCancel(ctx), succeeded(claimed))
			}
			if err != nil {
				t.Error(err)
				cancel()
				return
			}
			w.worked.Add(int64(len(claimed)))
			if idle = len(claimed) == 0; idle {
				<-time.After(time.Millisecond)
			}
		}
	})
	w.end = sync.OnceFunc(func() { cancel(); loops.Wait() })
	t.Cleanup(w.end)
	return w
}

func submissions() []job.Submission {
	all := make([]job.Submission, batch)
	for i := range all {
		all[i] = job.Submission{
			ID: job.ID(uuid.Must(uuid.NewV7())), Type: "WORK", Tenant: job.DefaultTenant, Payload: []byte(`{"to": "somebody@example.com"}`),
			MaxAttempts: 4, Timeout: 30 * time.Second,
		}
	}
	return all
}

func succeeded(claimed []job.Claimed) []job.Settlement {
	all := make([]job.Settlement, len(claimed))
	for i, c := range claimed {
		at := job.History{Attempt: c.Attempt, MaxAttempts: c.MaxAttempts, MaxCrashes: job.DefaultMaxCrashes}
		all[i] = job.Settlement{
			Lease: c.Lease, Decision: job.Decide(job.DefaultRetryPolicy(), at, job.Outcome{Kind: job.Success}, 0), Number: c.Attempt,
			Plugin: "builtin", Version: "v1.0.0",
		}
	}
	return all
}

// during is how many jobs were worked a second.
func (w *work) during(period time.Duration) float64 {
	began, before := time.Now(), w.worked.Load()
	<-time.After(period)
	return float64(w.worked.Load()-before) / time.Since(began).Seconds()
}

// portions is how many statements the deleter has sent, and how many of them were slow.
func portions(t *testing.T, o *rig.Orchestrator) (slow, all int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Address+"/metrics", nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "text/plain")
	request.SetBasicAuth("admin", o.Password)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	quick := 0
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(name, "holdfast_batch_duration_seconds_") || !strings.Contains(name, `operation="sweep"`) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err)
		switch {
		case strings.Contains(name, `le="`+portionWithin+`"`):
			quick = int(n)
		case strings.HasPrefix(name, "holdfast_batch_duration_seconds_count"):
			all = int(n)
		}
	}
	return all - quick, all
}
