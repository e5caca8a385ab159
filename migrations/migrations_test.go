package migrations_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrations go through
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestMigratingTwiceAppliesNothingTheSecondTime(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	applied, err := migrations.Up(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, len(migrationFiles(t)), applied)
	schema := dump(t, db)
	applied, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	require.Zero(t, applied)
	require.Equal(t, schema, dump(t, db))
}

func TestTwentyProcessesMigrateAtOnce(t *testing.T) {
	url := pgtest.EmptyURL(t)
	const processes = 20
	applied := make([]int, processes)
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range processes {
		db := database(t, url)
		all.Go(func() {
			<-start
			n, err := migrations.Up(context.Background(), db)
			if err != nil {
				t.Error(err)
			}
			applied[i] = n
		})
	}
	close(start)
	all.Wait()
	total := 0
	for _, n := range applied {
		total += n
	}
	require.Equal(t, len(migrationFiles(t)), total, "each migration applied by one of them")
}

func TestStatusDistinguishesPendingFromApplied(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	before, err := migrations.Status(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, before, len(migrationFiles(t)))
	for i, version := range before {
		require.Equal(t, int64(i+1), version.Number, "numbered without a gap")
		require.True(t, version.AppliedAt.IsZero())
	}
	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	after, err := migrations.Status(t.Context(), db)
	require.NoError(t, err)
	for i, version := range after {
		require.Equal(t, before[i].Name, version.Name)
		require.False(t, version.AppliedAt.IsZero())
	}
}

func TestDownLeavesNothingAndUpBringsItBack(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	empty := dump(t, db)
	_, err := migrations.Up(t.Context(), db)
	require.NoError(t, err)
	full := dump(t, db)
	require.NotEqual(t, empty, full)

	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
	require.NoError(t, err)
	_, err = provider.DownTo(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, empty, dump(t, db))
	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, full, dump(t, db))
}

// The ledger has rows when it is upgraded.
func TestDeadLettersGetTheTypeAndTenantOfTheirJobs(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), 1)
	require.NoError(t, err)
	for _, statement := range []string{
		`insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
			max_attempts, timeout, state, run_at)
		select gen_random_uuid(), 'acme', 'TYPE' || i, 0, '', '{}', '{}', '', '', 1, '1 s', 'queued', now() from generate_series(1, 3) i`,
		"insert into dead_letters select job_id, now() from jobs",
		"insert into dead_letters values (gen_random_uuid(), now())",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, []string{" ", "TYPE1 acme", "TYPE2 acme", "TYPE3 acme"},
		query(t, db, "select job_type || ' ' || tenant from dead_letters order by 1"))
}

// The lists have rows when they are upgraded, and earlier orchestrators, which do not
// know the columns, add more.
func TestTimersGetTheTypeOfTheirJobs(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), 3)
	require.NoError(t, err)
	const insertJobs = `insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
			max_attempts, timeout, state, attempt, run_at)
		select gen_random_uuid(), 'default', $1, 0, '', '{}', '{}', '', '', 4, '1 s', s::job_state, a, now()
		from (values ('created', 0), ('retry', 2)) as v (s, a)`
	insert := func(statement string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	insert("alter table jobs disable trigger all")
	insert(insertJobs, "BEFORE")
	insert("insert into timers (job_id, run_at, state, attempt) select job_id, run_at, state, attempt from jobs")
	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	insert("with made as ("+insertJobs+" returning job_id, run_at) insert into timers (job_id, run_at) select job_id, run_at from made", "AFTER")
	insert("insert into timers values (gen_random_uuid(), now())")
	require.Equal(t, []string{" created 0", "AFTER created 0", "AFTER retry 2", "BEFORE created 0", "BEFORE retry 2"},
		query(t, db, "select concat_ws(' ', job_type, state, attempt) from timers order by job_type collate \"C\", attempt"))
}

// A migration outside a transaction can be interrupted before its version is recorded.
func TestAMigrationWithoutATransactionCanBeRepeated(t *testing.T) {
	for _, version := range []int64{2, 4} {
		db := database(t, pgtest.EmptyURL(t))
		provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
		require.NoError(t, err)
		_, err = provider.UpTo(t.Context(), version)
		require.NoError(t, err)
		schema := dump(t, db)
		_, err = db.ExecContext(t.Context(), "delete from goose_db_version where version_id = $1", version)
		require.NoError(t, err)
		_, err = provider.UpTo(t.Context(), version)
		require.NoError(t, err)
		require.Equal(t, schema, dump(t, db))
	}
}

// A job is running while its orchestrator is stopped for the upgrade. After the
// upgrade, only its lease shows that.
func TestARunningJobKeepsItsLeaseInTheUpgrade(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), 4)
	require.NoError(t, err)
	for _, statement := range []string{
		"alter table jobs disable trigger all",
		`insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
			max_attempts, timeout, run_at, state, attempt, fence, worker_id, started_at, finished_at)
		select gen_random_uuid(), 'default', 'T', 0, '', '{}', '{}', '', '', 4, '1 s', now(), s::job_state, 4, 7, 'w', now(), f
		from (values ('running', null), ('succeeded', now()), ('dead', now())) as v (s, f)`,
		"alter table jobs enable trigger all",
		`insert into leases (job_id, lease_id, fence, worker_id, claimed_at, expires_at)
		select job_id, gen_random_uuid(), fence, worker_id, started_at, now() + interval '1 min' from jobs where state = 'running'`,
		`insert into job_attempts (job_id, fence, attempt, lease_id, worker_id, claimed_at, ended_at, outcome)
		select job_id, 7, 4, gen_random_uuid(), 'w', now(), now(), case state when 'dead' then 'failed' else 'succeeded' end::attempt_outcome
		from jobs where state <> 'running'`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	const seen = "select concat_ws(' ', state, attempt, fence, worker_id, started_at is not null) from %s order by state"
	const ended = "select concat_ws(' ', outcome, attempt, fence, worker_id) from job_attempts order by 1"
	jobs, attempts := query(t, db, fmt.Sprintf(seen, "jobs")), query(t, db, ended)
	_, err = provider.UpTo(t.Context(), 5)
	require.NoError(t, err)
	require.Equal(t, jobs, query(t, db, fmt.Sprintf(seen, "current_jobs")))
	require.Equal(t, "queued 3 6 w t", query(t, db, fmt.Sprintf(seen, "jobs"))[0])
	require.Equal(t, attempts, query(t, db, ended))
	_, err = provider.DownTo(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, jobs, query(t, db, fmt.Sprintf(seen, "jobs")))
	require.Equal(t, attempts, query(t, db, ended))
}

func TestFiguresBeginWithWhatIsInTheLedger(t *testing.T) {
	db := database(t, pgtest.EmptyURL(t))
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), 2)
	require.NoError(t, err)
	for _, statement := range []string{
		"alter table jobs disable trigger all",
		`insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
			max_attempts, timeout, run_at, state, attempt, worker_id, finished_at)
		select gen_random_uuid(), 'default', 'T', 0, '', '{}', '{}', '', '', 4, '1 s', now(), s::job_state, a, w, f
		from (values ('queued', 1, null, null), ('created', 0, null, null), ('retry', 2, 'w', null),
			('succeeded', 1, 'w', now()), ('succeeded', 2, 'v', now()), ('succeeded', 1, 'w', now()),
			('dead', 4, 'w', now()), ('canceled', 0, null, now())) as v (s, a, w, f)`,
		"alter table jobs enable trigger all",
		"insert into ready select job_id, job_type, 0, run_at from jobs where state = 'queued'",
		"insert into timers select job_id, run_at from jobs where state in ('created', 'retry')",
		`insert into job_attempts (job_id, fence, attempt, lease_id, worker_id, claimed_at, ended_at, outcome)
		select job_id, n, n, gen_random_uuid(), 'w', now() - interval '3 s', now(),
			(case when state = 'succeeded' and n = attempt then 'succeeded' else 'failed' end)::attempt_outcome
		from jobs, generate_series(1, attempt) n where state in ('succeeded', 'dead', 'retry')`,
		// The attempt is lost, but the job is not.
		"delete from job_attempts where job_id = (select job_id from jobs where worker_id = 'v') and outcome = 'succeeded'",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	_, err = migrations.Up(t.Context(), db)
	require.NoError(t, err)
	for figure, want := range map[string][]string{
		"select concat_ws(' ', job_type, event, jobs, seconds) from tally_totals order by event": {
			"T submitted 8 0", "T succeeded 3 6", "T canceled 1 0", "T failed 7 0",
		},
		"select concat_ws(' ', worker_id, event, jobs) from tally_workers order by 1": {"v succeeded 1", "w dead 1", "w succeeded 2"},
		"select concat_ws(' ', attempt, jobs) from tally_attempts order by 1":         {"0 1", "1 2", "2 1", "4 1"},
		"select concat_ws(' ', state, attempt) from timers order by 1":                {"created 0", "retry 2"},
		"select attempt::text from ready":                                             {"1"},
	} {
		require.Equal(t, want, query(t, db, figure), figure)
	}
}

// The golden file shows a reviewer what a migration changes.
func TestTheSchemaIsTheOneReviewed(t *testing.T) {
	db := database(t, pgtest.URL(t))
	path := filepath.Join("testdata", "schema.txt")
	schema := dump(t, db)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(schema), 0o644))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(golden), schema, "run with -update if the change is meant")
}

// A change to a column that an index contains, even in its predicate, cannot be
// heap-only, and every transition changes the ledger.
func TestNoIndexHoldsALedgerColumnThatChanges(t *testing.T) {
	db := database(t, pgtest.URL(t))
	fixed := map[string]bool{
		"job_id": true, "tenant": true, "job_type": true, "priority": true, "idempotency_key": true,
		"request_hash": true, "payload": true, "tags": true, "trace_parent": true, "trace_state": true,
		"max_attempts": true, "timeout": true, "created_at": true, "parent_id": true, "resubmission_of": true,
	}
	rows := query(t, db, `
		select distinct i.indexrelid::regclass::text || ' ' || a.attname
		from pg_index i
		join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = i.indexrelid and d.refobjid = i.indrelid
		join pg_attribute a on a.attrelid = i.indrelid and a.attnum = d.refobjsubid
		where i.indrelid = 'jobs'::regclass
		union
		select conindid::regclass::text || ' ' || a.attname
		from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any (c.conkey)
		where c.conrelid = 'jobs'::regclass and c.conindid <> 0`)
	require.GreaterOrEqual(t, len(rows), 3)
	for _, row := range rows {
		index, column, _ := strings.Cut(row, " ")
		require.True(t, fixed[column], "index %s holds %s", index, column)
	}
}

func database(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func migrationFiles(t testing.TB) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "*.sql")
	require.NoError(t, err)
	return names
}

// dump describes the schema from the catalogs. Its order and words do not depend on
// the server's version or on the order of creation.
func dump(t testing.TB, db *sql.DB) string {
	t.Helper()
	var text strings.Builder
	for _, section := range []struct{ title, sql string }{
		{"types", `
			select t.typname || ': ' || string_agg(e.enumlabel, ', ' order by e.enumsortorder)
			from pg_type t join pg_enum e on e.enumtypid = t.oid group by t.typname order by t.typname`},
		{"tables", `
			select c.relname || coalesce(' (' || array_to_string(c.reloptions, ', ') || ')', '') || E'\n' ||
				(select string_agg('    ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
						|| case when a.attnotnull then ' not null' else '' end
						|| coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''), E'\n' order by a.attnum)
				from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
				where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)
			from pg_class c
			where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname not like 'goose%'
			order by c.relname`},
		{"views", `select viewname || E'\n' || definition from pg_views where schemaname = 'public' order by viewname`},
		{"constraints", `
			select c.conrelid::regclass || ' ' || c.conname || ' ' || pg_get_constraintdef(c.oid, true)
			from pg_constraint c
			where c.connamespace = 'public'::regnamespace and c.conrelid <> 0 and c.contype <> 'n'
				and c.conrelid::regclass::text not like 'goose%'
			order by 1`},
		{"indexes", `select indexdef from pg_indexes where schemaname = 'public' and tablename not like 'goose%' order by indexname`},
		{"triggers", `select pg_get_triggerdef(oid, true) from pg_trigger where not tgisinternal order by tgname`},
		{"functions", `select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'public'::regnamespace order by p.proname`},
	} {
		text.WriteString("-- " + section.title + "\n" + strings.Join(query(t, db, section.sql), "\n") + "\n\n")
	}
	return text.String()
}

func query(t testing.TB, db *sql.DB, text string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}
