// Package pooler tests orchestrators whose connections go through PgBouncer with transaction
// pooling. With HOLDFAST_TEST_POOLER=full, ten of them work for two minutes.
package pooler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgbouncer"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	patience = 4 * rigtest.Patience
	glance   = 20 * time.Millisecond
	// pollInterval is that of orchestrators by default.
	pollInterval = time.Second
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/pooler", "../../cmd/orchestrator", "../../examples/handlers/echo"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// full says that the machine is there for these tests alone: they put it under full load.
var full = os.Getenv("HOLDFAST_TEST_POOLER") == "full"

// start starts an orchestrator that reaches its database through a pooler, and past it. It
// logs nothing but warnings and errors.
func start(t *testing.T, through, past string, settings ...string) *rig.Orchestrator {
	t.Helper()
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
		"database.url=" + through, "database.direct_url=" + past, "database.max_connections=10", "log.format=json", "log.level=warn",
	}, settings...)...)
	rigtest.Start(t, o)
	return o
}

// echoing are the settings of an orchestrator that runs ECHO jobs.
func echoing() []string {
	return []string{"plugins.0.name=echo", "plugins.0.path=" + filepath.Join(bin, "echo")}
}

func echo(text string) rig.Submission {
	return rig.Submission{JobType: "ECHO", Payload: map[string]any{"text": text}}
}

func TestOrchestratorsShareFewConnectionsWithoutAnError(t *testing.T) {
	if !full {
		t.Skip("it takes two minutes of full load: make pooler runs it")
	}
	const (
		orchestrators, clientsEach, connections = 10, 4, 40
		during                                  = 2 * time.Minute
	)
	past := pgtest.URL(t)
	_, err := postgres.SetDefaults(t.Context(), past) // before the pooler opens a session, which would lack them for an hour
	require.NoError(t, err)
	through := pgbouncer.Start(t, past, map[string]string{"default_pool_size": strconv.Itoa(connections)})
	db, err := pgxpool.New(t.Context(), past)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	all := make([]*rig.Orchestrator, orchestrators)
	for i := range all {
		all[i] = start(t, through, past, echoing()...)
	}

	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var clients sync.WaitGroup
	var accepted, acts atomic.Int64
	for i, o := range all {
		for range clientsEach {
			clients.Go(func() { accepted.Add(submit(t, o, ctx.Done())) })
		}
		clients.Go(func() { acts.Add(act(t, o, all[(i+1)%len(all)], ctx.Done())) })
	}
	most := 0
	for ctx.Err() == nil {
		most = max(most, count(t, db, "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'holdfast'"))
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
	clients.Wait()
	require.Eventually(t, func() bool {
		return count(t, db, "select count(*) from jobs where state not in ('succeeded', 'canceled')") == 0
	}, patience, glance)
	t.Logf("%d jobs and %d acts in %s, by %d orchestrators over at most %d connections", accepted.Load(), acts.Load(), during, orchestrators, most)
	require.EqualValues(t, accepted.Load()+acts.Load(), count(t, db, "select count(*) from jobs where state = 'succeeded'"))
	require.EqualValues(t, acts.Load(), count(t, db, "select count(*) from jobs where state = 'canceled'"))
	require.LessOrEqual(t, most, connections)
	require.Positive(t, acts.Load())
	for _, o := range all {
		requireSound(t, o)
		require.NoError(t, o.ShutDown(t.Context()))
		for line := range strings.Lines(rigtest.Logged(t, o)) {
			require.Contains(t, line, "plugin output suppressed", "no other warning, and no error")
		}
	}
}

func TestSessionPoolingWorksWithTheSameConfiguration(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, past, map[string]string{"pool_mode": "session"})
	o := start(t, through, past, echoing()...)
	ids, err := o.SubmitBatch(t.Context(), slices.Repeat([]rig.Submission{echo("hello")}, 100))
	require.NoError(t, err)
	for _, id := range ids {
		rigtest.Await(t, o, id, "COMPLETED")
	}
	requireSound(t, o)
}

// submit submits batches, each when the one before has ended, and returns how many jobs were
// accepted.
func submit(t *testing.T, o *rig.Orchestrator, end <-chan struct{}) (accepted int64) {
	const size = 100
	batch := slices.Repeat([]rig.Submission{echo("hello")}, size)
	for !closed(end) {
		ids, err := o.SubmitBatch(t.Context(), batch)
		if !assert.NoError(t, err) {
			break
		}
		accepted += size
		_, err = o.AwaitThat(t.Context(), ids[size-1], func(job rig.Job) bool { return job.Status == "COMPLETED" })
		assert.NoError(t, err)
	}
	return accepted
}

// act changes jobs that wait, by one orchestrator and another, reads lists and figures, and
// returns how often it did.
func act(t *testing.T, one, other *rig.Orchestrator, end <-chan struct{}) (times int64) {
	for ; !closed(end); times++ {
		held := echo("held")
		held.Hold = true
		id, err := one.Submit(t.Context(), held)
		if !assert.NoError(t, err) {
			break
		}
		assert.NoError(t, errors.Join(
			other.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/release", nil, http.StatusOK, nil),
			one.Call(t.Context(), http.MethodGet, "/jobs?limit=50", nil, http.StatusOK, nil),
			one.Call(t.Context(), http.MethodGet, "/metrics", nil, http.StatusOK, nil),
		))
		id, err = other.Submit(t.Context(), held)
		assert.NoError(t, err)
		assert.NoError(t, one.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
	}
	return times
}

func closed(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// requireSound asks an orchestrator for its diagnosis.
func requireSound(t *testing.T, o *rig.Orchestrator) {
	t.Helper()
	var found struct{ Checks []job.Check }
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/doctor", nil, http.StatusOK, &found))
	names := make([]string, 0, len(found.Checks))
	for _, check := range found.Checks {
		names = append(names, check.Name)
		// The settings are those of the tests' server, whose autovacuum need not have come by yet.
		if check.Name != "server_settings" && check.Name != "statistics" {
			require.Equal(t, job.Fine, check.Severity, "%+v", check)
		}
	}
	require.Contains(t, names, "session_settings")
}

// refusal is what a command says that does not work with these URLs.
func refusal(t *testing.T, through, past, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), strings.Fields(command)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOLDFAST_DATABASE__URL="+through, "HOLDFAST_DATABASE__DIRECT_URL="+past, "HOLDFAST_SERVER__ADDRESS=127.0.0.1:0")
	said, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended, "%s", said)
	require.Equal(t, 1, ended.ExitCode(), "%s", said)
	return string(said)
}

func TestAPoolerOfAnotherDatabaseIsRefused(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, pgtest.URL(t), nil)
	for _, command := range []string{"serve", "migrate up", "list --direct"} {
		require.Regexp(t, `database\.url leads to the database \\?"\w+\\?" and database\.direct_url to \\?"\w+\\?": both must lead to the same one`,
			refusal(t, through, past, command), command)
	}
}

func TestADirectURLOfAnotherUserIsRefused(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, past, nil)
	db, err := pgx.Connect(t.Context(), past)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close(context.WithoutCancel(t.Context())) })
	const other = "somebody_else"
	_, err = db.Exec(t.Context(), "create role "+other+" superuser login")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Exec(context.WithoutCancel(t.Context()), "drop role "+other)
		assert.NoError(t, err)
	})
	direct, err := url.Parse(past)
	require.NoError(t, err)
	direct.User = url.User(other)
	for _, command := range []string{"serve", "migrate up", "export ledger.ndjson"} {
		require.Contains(t, refusal(t, through, direct.String(), command), "both need the same one", command)
	}
}

func TestAPoolerThatForgetsStatementsIsRefused(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, past, map[string]string{"max_prepared_statements": "0"})
	for _, command := range []string{"serve", "migrate up", "list --direct"} {
		require.Contains(t, refusal(t, through, past, command), "use PgBouncer 1.21 or later with max_prepared_statements above 0", command)
	}
}

func TestAPoolerWithOneSessionForgetsNothing(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, past, map[string]string{"default_pool_size": "1"})
	require.NoError(t, postgres.CheckPooler(t.Context(), through, past))
}

func TestAPoolerThatLetsStatementsWaitIsUnavailable(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, past, map[string]string{"default_pool_size": "1"})
	holder, err := pgx.Connect(t.Context(), through)
	require.NoError(t, err)
	t.Cleanup(func() { _ = holder.Close(context.WithoutCancel(t.Context())) })
	_, err = holder.Exec(t.Context(), "begin")
	require.NoError(t, err)
	require.ErrorIs(t, postgres.CheckPooler(t.Context(), through, past), job.ErrUnavailable)
}

func TestAPoolerWithoutADirectURLIsNamed(t *testing.T) {
	require.Contains(t, refusal(t, pgbouncer.Start(t, pgtest.URL(t), nil), "", "serve"), "the URL leads through a pooler: set database.direct_url")
}

func TestOtherOrchestratorsFindJobsWithoutHintsByPolling(t *testing.T) {
	past := pgtest.URL(t)
	through := pgbouncer.Start(t, past, nil)
	proxy := pgtest.Between(t, past)
	submitting := start(t, through, past)
	working := start(t, through, proxy.URL, echoing()...)
	require.Eventually(t, func() bool {
		return submitting.Call(t.Context(), http.MethodGet, "/job-types/ECHO", nil, http.StatusOK, nil) == nil
	}, patience, glance)

	hinted := latencies(t, submitting)
	proxy.Down.Store(true)
	proxy.Cut()
	polled := latencies(t, submitting)
	t.Logf("until a job has begun: median %s with hints; without, %s, at most %s",
		hinted[len(hinted)/2], polled[len(polled)/2], polled[len(polled)-1])
	require.Less(t, hinted[len(hinted)/2], polled[len(polled)/2])
	require.Less(t, polled[len(polled)/2], 2*pollInterval)
	require.True(t, working.Running())
}

// latencies are the times from the submission of a job to its beginning in another
// orchestrator, sorted.
func latencies(t *testing.T, by *rig.Orchestrator) []time.Duration {
	t.Helper()
	jobs := 9
	if full {
		jobs = 100
	}
	var all []time.Duration
	for range jobs {
		time.Sleep(rand.N(pollInterval)) //nolint:gosec // at any moment between two polls
		id := rigtest.Submit(t, by, echo("hello"))
		rigtest.Await(t, by, id, "COMPLETED")
		var found struct {
			Attempts []struct {
				DueAt, ClaimedAt time.Time
			}
		}
		require.NoError(t, by.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &found))
		all = append(all, found.Attempts[0].ClaimedAt.Sub(found.Attempts[0].DueAt))
	}
	slices.Sort(all)
	return all
}

func count(t *testing.T, db *pgxpool.Pool, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(context.Background(), query).Scan(&n))
	return n
}
