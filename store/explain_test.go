package store

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

var update = flag.Bool("update", false, "write the golden files anew")

// hot are the statements that run for every job, those of pages that stay open, and those of idle orchestrators.
var hot = []string{
	"submit", "submit_unkeyed", "submit_gated", "claim", "shares", "look_behind", "lock_worker", "renew", "kept", "succeed", "succeed_gated", "retry", "dead_letter", "release_claim", "confirm_cancel", "settle_result",
	"reap", "promote", "expire", "park_claim", "release", "save_progress", "save_logs", "cancel",
	"park_ready", "drain_wakes", "heads", "admit", "move_parked", "add_slots", "change_slots", "slots_of",
	"newcomers", "cancel_newcomers", "turns_of", "virtual_times",
	"age_parked", "age_ready", "claim_unique", "unclaim_unique", "kept_out", "tidy_unique", "delete_ended", "delete_dead", "erase", "drain_ends",
	"callbacks", "record_events", "forget_events", "events", "lookup", "outlook", "surroundings",
}

// The tables that grow with the number of jobs. Statements read them only by their
// indexes, and never whole.
var growing = []string{"jobs", "ready", "leases", "timers", "unsuccessful_attempts", "attempt_logs", "dead_letters", "parked", "expiries", "unique_keys", "events"}

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

// Nothing was queued when the ledger was last analyzed, and now thousands of jobs
// wait. A claim that trusts those statistics reads the whole ledger, which takes a
// second.
func TestPlansOfTheHotStatementsOnALedgerOfThePast(t *testing.T) {
	s := open(t)
	fill(t, s, job.Succeeded, 5_000, "DONE")
	exec(t, s, "analyze jobs")
	fill(t, s, job.Queued, 10_000, "COMMON")
	exec(t, s, "analyze ready")
	comparePlans(t, s, false)
}

// A list that was vacuumed while it was nearly empty has pages, but the planner knows
// of no rows in it. It would then read the whole list, and the whole batch for each
// row. In one run of eight, this made settlements four times as slow. That is why the
// statements contain "between b.job_id and b.job_id", for which the planner can only
// use the index.
func TestPlansOfTheHotStatementsAfterAQuietNight(t *testing.T) {
	s := open(t)
	if !ask[bool](t, s, "select rolsuper from pg_roles where rolname = current_user") {
		t.Skip("only a superuser may write statistics")
	}
	fill(t, s, job.Queued, 1000, "COMMON")
	exec(t, s, "analyze")
	lists := []string{"ready", "ready_pkey", "leases", "leases_pkey", "timers", "timers_pkey", "timers_run_at"}
	exec(t, s, "update pg_class set reltuples = 0, relpages = 300 where relname = any($1)", lists)
	// Those that look up dead letters are planned for a list that is really empty: any index
	// will do until it is analyzed again, and what they look for is older than that.
	comparePlans(t, s, false, "delete_dead", "erase")
	list, _ := listing(job.Filter{Limit: 50, Type: "COMMON", States: []job.State{job.Queued}}, foundColumns, maxScan)
	for name, sql := range map[string]string{"list": list, "submitted": sql.Text("submitted"), "get": sql.Text("get"), "detail": sql.Text("detail"), "waits": sql.Text("waits"), "lookup": sql.Text("lookup")} {
		require.Regexp(t, `leases_pkey on leases l\n +Index Cond`, explainSQL(t, s, sql), name)
	}
}

// comparePlans compares the shape of each plan with a golden file. The shape is the
// same on all versions of PostgreSQL that we support.
func comparePlans(t *testing.T, s *Store, write bool, except ...string) {
	t.Helper()
	for _, name := range hot {
		if slices.Contains(except, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			pool := s.db.Worker
			if name == "renew" || name == "lock_worker" || name == "kept" {
				pool = s.db.Heartbeats
			}
			conn, err := pool.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			var plans []struct{ Plan planNode }
			text := explainOn(t, conn.Conn(), sql.Text(name), "costs off, format json")
			require.NoError(t, json.Unmarshal([]byte(text), &plans))
			var shape strings.Builder
			plans[0].Plan.draw(&shape, indexColumns(t, s), 0)
			for _, never := range []string{"Hash", "Merge Join", "Bitmap", "Gather", "Memoize"} {
				require.NotContains(t, shape.String(), never, "%s", text)
			}
			for _, table := range growing {
				if (name == "reap" || name == "surroundings") && table == "leases" {
					continue // on purpose: see its header
				}
				require.NotRegexp(t, "Seq Scan on "+table+`\b`, shape.String())
			}
			path := filepath.Join("testdata", "explain", name+".txt")
			if write {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(shape.String()), 0o644))
			}
			golden, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(golden), shape.String(), "run with -update if the new plan is meant")
		})
	}
}

// planNode is the part of a node of EXPLAIN's JSON that is compared.
type planNode struct {
	Type      string   `json:"Node Type"`
	Strategy  string   `json:"Strategy"`
	Subplan   string   `json:"Subplan Name"`
	Operation string   `json:"Operation"`
	Relation  string   `json:"Relation Name"`
	Index     string   `json:"Index Name"`
	Direction string   `json:"Scan Direction"`
	Condition string   `json:"Index Cond"`
	Arbiters  []string `json:"Conflict Arbiter Indexes"`
	CTE       string   `json:"CTE Name"`
	Function  string   `json:"Function Name"`
	Plans     []planNode
}

// glue are nodes that neither read nor write anything. Versions of PostgreSQL put them
// in different places. They also sort rows that the statement has already read in
// different ways, so such sorts are left out too.
var glue = []string{"Result", "Append", "Subquery Scan", "Materialize", "ProjectSet", "WindowAgg", "Aggregate", "Unique"}

// draw writes a line for each node that reads, writes or joins, with the columns that
// its index is searched by.
func (n planNode) draw(to *strings.Builder, columns map[string][]string, depth int) {
	if cte, ok := strings.CutPrefix(n.Subplan, "CTE "); ok {
		fmt.Fprintf(to, "%sCTE %s\n", strings.Repeat("  ", depth), cte)
		depth++
	}
	skip := slices.Contains(glue, n.Type) && n.Strategy != "Hashed" && n.Strategy != "Mixed" ||
		n.Type == "Sort" && !n.readsTable()
	if !skip {
		line := n.Type
		switch {
		case n.Operation != "":
			line = n.Operation + " on " + n.Relation
		case n.Index != "":
			line += " using " + n.Index + " on " + n.Relation
		case n.Relation != "":
			line += " on " + n.Relation
		case n.CTE != "":
			line += " on " + n.CTE
		}
		if n.Direction == "Backward" {
			line += " backward"
		}
		if len(n.Arbiters) > 0 {
			line += " or update by " + strings.Join(n.Arbiters, ", ")
		}
		if n.Condition != "" {
			line += " by " + strings.Join(searchedBy(n.Condition, columns[n.Index]), ", ")
		}
		if n.Strategy != "" {
			line = n.Strategy + " " + line
		}
		fmt.Fprintf(to, "%s%s\n", strings.Repeat("  ", depth), line)
		depth++
	}
	for _, child := range n.Plans {
		child.draw(to, columns, depth)
	}
}

func (n planNode) readsTable() bool {
	return n.Relation != "" || slices.ContainsFunc(n.Plans, planNode.readsTable)
}

var identifier = regexp.MustCompile(`[\w.]+`)

// searchedBy are the columns of the index that a condition compares. Those of other
// tables have the table's name before them.
func searchedBy(condition string, columns []string) (found []string) {
	for _, name := range identifier.FindAllString(condition, -1) {
		if slices.Contains(columns, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

func indexColumns(t testing.TB, s *Store) map[string][]string {
	t.Helper()
	columns := make(map[string][]string)
	rows, err := s.db.Worker.Query(t.Context(), `select i.indexrelid::regclass::text, array_agg(a.attname::text order by a.attnum)
		from pg_index i join pg_attribute a on a.attrelid = i.indexrelid group by 1`)
	require.NoError(t, err)
	var index string
	var of []string
	_, err = pgx.ForEachRow(rows, []any{&index, &of}, func() error {
		columns[index] = slices.Clone(of)
		return nil
	})
	require.NoError(t, err)
	return columns
}

// explainSQL returns the plan of a composed statement, under the given settings.
func explainSQL(t testing.TB, s *Store, text string, settings ...string) string {
	t.Helper()
	tx, err := s.db.Worker.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	for _, setting := range settings {
		_, err := tx.Exec(t.Context(), setting)
		require.NoError(t, err)
	}
	return explainOn(t, tx.Conn(), text, "costs off")
}

// explainOn returns the plan that a session uses for a statement, whatever its
// arguments.
func explainOn(t testing.TB, conn *pgx.Conn, sql, options string) string {
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
	rows, err := conn.Query(t.Context(), "explain ("+options+") execute probe"+arguments, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n") + "\n"
}
