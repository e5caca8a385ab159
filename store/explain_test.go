package store

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenServer is the major version of PostgreSQL that the golden plans come
// from. Another words its plans differently: there only the scans are checked.
const goldenServer = 15

// hot are the statements that run for every job.
var hot = []string{
	"submit", "submit_unkeyed", "claim", "look_behind", "renew", "succeed", "retry", "dead_letter", "release_claim", "confirm_cancel", "settle_result",
	"reap", "promote", "save_progress", "save_logs", "cancel",
}

// The tables that grow with the number of jobs. None is ever read whole, and
// none but by its indexes.
var growing = []string{"jobs", "ready", "leases", "timers", "unsuccessful_attempts", "attempt_logs", "dead_letters"}

func TestPlansOfTheHotStatementsOnColdStatistics(t *testing.T) {
	s := open(t)
	require.Zero(t, ask[int](t, s, "select count(*) from pg_stats where schemaname = 'public'"), "never analysed")
	comparePlans(t, s, *update)
}

func TestPlansOfTheHotStatementsOnALargeSkewedLedger(t *testing.T) {
	s := open(t)
	fill(t, s, job.Queued, 100_000, "COMMON")
	fill(t, s, job.Succeeded, 80_000, "DONE")
	fill(t, s, job.Running, 10_000, "BUSY")
	fill(t, s, job.Created, 9_900, "LATER")
	fill(t, s, job.Dead, 90, "DEAD")
	fill(t, s, job.Queued, 10, "RARE")
	exec(t, s, "insert into unsuccessful_attempts (job_id, fence, attempt, lease_id, worker_id, claimed_at, ended_at, outcome) select job_id, 1, 1, gen_random_uuid(), 'w', now(), now(), 'succeeded' from jobs where state = 'succeeded'")
	exec(t, s, "insert into workers (worker_id, alive_until, host, pid, pid_started) select 'w' || i, now(), 'h', i, i from generate_series(1, 200) i")
	exec(t, s, "analyze")
	comparePlans(t, s, false)
}

// Nothing was queued when the ledger was last analysed, and thousands of jobs wait
// now: a claim that believes the former reads the ledger whole, in a second.
func TestPlansOfTheHotStatementsOnALedgerOfThePast(t *testing.T) {
	s := open(t)
	fill(t, s, job.Succeeded, 5_000, "DONE")
	exec(t, s, "analyze jobs")
	fill(t, s, job.Queued, 10_000, "COMMON")
	exec(t, s, "analyze ready")
	comparePlans(t, s, false)
}

// A list that was vacuumed while little was in it has pages, and no rows that the
// planner knows of. It would then go through the whole list, and through the whole
// batch for each row: settlements took four times as long, in one run of eight.
// Hence "between b.job_id and b.job_id" in the statements: the planner finds no
// other way than through the index.
func TestPlansOfTheHotStatementsAfterAQuietNight(t *testing.T) {
	s := open(t)
	if !ask[bool](t, s, "select rolsuper from pg_roles where rolname = current_user") {
		t.Skip("only a superuser may write statistics")
	}
	fill(t, s, job.Queued, 1000, "COMMON")
	exec(t, s, "analyze")
	lists := []string{"ready", "ready_pkey", "leases", "leases_pkey", "timers", "timers_pkey", "timers_run_at"}
	exec(t, s, "update pg_class set reltuples = 0, relpages = 300 where relname = any($1)", lists)
	comparePlans(t, s, false)
	list, _ := listing(job.Filter{Limit: 50, Type: "COMMON", States: []job.State{job.Queued}})
	for name, sql := range map[string]string{"list": list, "submitted": sql.Text("submitted"), "get": sql.Text("get"), "detail": sql.Text("detail")} {
		require.Regexp(t, `leases_pkey on leases l\n +Index Cond`, explainSQL(t, s, sql), name)
	}
}

func comparePlans(t *testing.T, s *Store, write bool) {
	t.Helper()
	version := ask[int](t, s, "select current_setting('server_version_num')::int / 10000")
	for _, name := range hot {
		t.Run(name, func(t *testing.T) {
			plan := explain(t, s, name)
			for _, table := range growing {
				if name == "reap" && table == "leases" {
					continue // on purpose: see its header
				}
				require.NotContains(t, plan, "Seq Scan on "+table+" ", "%s", plan)
				require.NotContains(t, plan, "Seq Scan on "+table+"\n", "%s", plan)
			}
			if version != goldenServer {
				return
			}
			path := filepath.Join("testdata", "explain", name+".txt")
			if write {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(plan), 0o644))
			}
			golden, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(golden), plan, "run with -update if the new plan is meant")
		})
	}
}

// explain returns the plan that the store's own sessions use for a statement,
// whatever its arguments.
func explain(t testing.TB, s *Store, name string) string {
	t.Helper()
	pool := s.db.Worker
	if name == "renew" {
		pool = s.db.Heartbeats
	}
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	return explainOn(t, conn.Conn(), sql.Text(name))
}

// explainSQL is the plan of a statement that is put together.
func explainSQL(t testing.TB, s *Store, sql string) string {
	t.Helper()
	conn, err := s.db.Worker.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	return explainOn(t, conn.Conn(), sql)
}

func explainOn(t testing.TB, conn *pgx.Conn, sql string) string {
	t.Helper()
	described, err := conn.Prepare(t.Context(), "", sql)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "prepare probe as "+sql)
	require.NoError(t, err)
	defer func() {
		_, err := conn.Exec(context.Background(), "deallocate probe")
		require.NoError(t, err)
	}()
	arguments := ""
	if n := len(described.ParamOIDs); n > 0 {
		arguments = "(null" + strings.Repeat(", null", n-1) + ")"
	}
	rows, err := conn.Query(t.Context(), "explain (costs off) execute probe"+arguments, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n") + "\n"
}
