package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrations go through
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	statements "github.com/holdfast-jobs/holdfast/store/sql"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

const patience = 2 * time.Minute

func TestMain(m *testing.M) { pgtest.Main(m) }

// open returns a doctor for a fresh database, and the database's address.
func open(t testing.TB) (*Doctor, string) {
	t.Helper()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return New(db.Reads, job.Cell{}, nil), url
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	require.NoError(t, err, sql)
}

func ask[T any](t testing.TB, conn *pgx.Conn, sql string) (value T) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&value), sql)
	return value
}

// diagnose returns the checks by name.
func diagnose(t testing.TB, d *Doctor) map[string]job.Check {
	t.Helper()
	found, err := d.Diagnose(t.Context())
	require.NoError(t, err)
	require.Len(t, found, len(checks))
	byName := make(map[string]job.Check)
	for i, check := range found {
		require.Equal(t, checks[i].name, check.Name)
		byName[check.Name] = check
	}
	return byName
}

func TestTheSchemaThatADiagnosisWantsIsTheOneThatMigrationsMake(t *testing.T) {
	_, url := open(t)
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	_, newest, err := migrations.Compare(t.Context(), db)
	require.NoError(t, err)
	require.EqualValues(t, newest, schemaVersion)

	parts := ask[[]string](t, connect(t, url), `
		select array_agg(part) from (
			select concat_ws(' ', 'trigger', tgname, tgrelid::regclass) as part from pg_trigger where not tgisinternal
			union all
			select concat_ws(' ', 'index', indexname, tablename) from pg_indexes where schemaname = 'public' and tablename not like 'goose%'
		) made`)
	var wanted []string
	for _, part := range regexp.MustCompile(`\('(trigger|index)', '(\w+)', '(\w+)'\)`).FindAllStringSubmatch(statements.Text("doctor_parts"), -1) {
		wanted = append(wanted, strings.Join(part[1:], " "))
	}
	require.ElementsMatch(t, parts, wanted)
}

func TestADiagnosisSeesWhoHoldsASnapshot(t *testing.T) {
	d, url := open(t)
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), "set application_name = 'old report'")
	require.NoError(t, err)
	snapshot, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = snapshot.Exec(t.Context(), "select from jobs")
	require.NoError(t, err)
	other := connect(t, url)
	for range 3 {
		exec(t, other, "select txid_current()")
	}
	var found []snapshotRow
	require.NoError(t, d.read(t.Context(), func(tx pgx.Tx) (err error) {
		found, err = postgres.Rows(t.Context(), tx, "doctor_snapshots", pgx.RowToStructByName[snapshotRow])
		return err
	}))
	require.NotEmpty(t, found)
	require.Contains(t, found[0].String(), "session old report, ")
	require.GreaterOrEqual(t, found[0].Transactions, int64(3))
	require.NotNil(t, found[0].Held)
	require.NotContains(t, diagnose(t, d)["oldest_snapshot"].Summary, "0 transactions")
}

func TestASnapshotIsAWarningAfterTenMinutesAndAProblemAfterAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		held         time.Duration
		transactions int64
		severity     job.Severity
	}{
		"young":             {10*time.Minute - 1, 10_000_000 - 1, job.Fine},
		"ten minutes":       {10 * time.Minute, 1, job.Warning},
		"an hour":           {time.Hour, 1, job.Problem},
		"many transactions": {time.Second, 10_000_000, job.Problem},
	} {
		t.Run(name, func(t *testing.T) {
			rows := []snapshotRow{
				{"replication slot", "physical", nil, c.transactions},
				{"session", "psql", &c.held, 1},
			}
			require.Equal(t, c.severity, judgeSnapshots(rows).Severity)
			rows = append(rows, snapshotRow{Kind: "hidden", Holder: "3"})
			require.Equal(t, worse(c.severity, job.Warning), judgeSnapshots(rows).Severity)
			require.Contains(t, judgeSnapshots(rows).Details, "sessions of other users that could not be examined: 3")
		})
	}
}

func TestSettingsThatCanLoseJobsOrCostMuchAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		settingsRow
		severity job.Severity
	}{
		"as they should be":          {settingsRow{true, true, true, true, 100, 79, 1000, 500}, job.Fine},
		"no writes":                  {settingsRow{false, true, true, true, 100, 1, 1000, 500}, job.Problem},
		"no fsync":                   {settingsRow{true, false, true, true, 100, 1, 1000, 500}, job.Problem},
		"no full pages":              {settingsRow{true, true, false, true, 100, 1, 1000, 500}, job.Warning},
		"commits that do not wait":   {settingsRow{true, true, true, false, 100, 1, 1000, 500}, job.Warning},
		"a log that is full early":   {settingsRow{true, true, true, true, 100, 1, 1000, 501}, job.Warning},
		"nearly all connections":     {settingsRow{true, true, true, true, 100, 80, 1000, 500}, job.Warning},
		"hardly any connection left": {settingsRow{true, true, true, true, 100, 95, 1000, 500}, job.Problem},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.severity, judgeSettings([]settingsRow{c.settingsRow}).Severity)
		})
	}
	d, url := open(t)
	check := diagnose(t, d)["server_settings"]
	require.Equal(t, ask[string](t, connect(t, url), "show fsync") == "off", check.Severity == job.Problem)
	require.Regexp(t, `^[1-9]\d* of [1-9]\d+ connections are in use\.$`, check.Summary)
}

func TestADatabaseThatTakesNoWritesIsAProblem(t *testing.T) {
	_, url := open(t)
	exec(t, connect(t, url), "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$")
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	check := diagnose(t, New(db.Reads, job.Cell{}, nil))["server_settings"]
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, strings.Join(check.Details, "\n"), "takes no writes")
}

func TestTheLogBetweenTwoCheckpointsIsKnown(t *testing.T) {
	d, url := open(t)
	conn := connect(t, url)
	look := func() (set settingsRow) {
		t.Helper()
		require.NoError(t, d.read(t.Context(), func(tx pgx.Tx) error {
			found, err := postgres.Rows(t.Context(), tx, "doctor_settings", pgx.RowToStructByName[settingsRow])
			set = found[0]
			return err
		}))
		return set
	}
	before := look()
	require.Equal(t, ask[int64](t, conn, "select setting::bigint * 1024 * 1024 from pg_settings where name = 'max_wal_size'"), before.MaxLog)
	exec(t, conn, "insert into tallies select date_bin('10 seconds', now(), 'epoch'), 'A', '', 'submitted', 0, 0, 0 from generate_series(1, 100000)")
	require.Eventually(t, func() bool {
		exec(t, conn, "select") // version 14 counts when a session is used again
		return look().Log > before.Log+1<<20
	}, patience, 50*time.Millisecond)
}

func TestACheckThatTakesTooLongIsAWarning(t *testing.T) {
	d, url := open(t)
	before := setup
	setup = strings.Replace(setup, "100s", "2s", 1)
	t.Cleanup(func() { setup = before })
	conn := connect(t, url)
	exec(t, conn, "begin")
	exec(t, conn, "lock table timers in access exclusive mode")
	checks := diagnose(t, d)
	exec(t, conn, "rollback")
	require.Equal(t, job.Warning, checks["ledger_and_lists"].Severity)
	require.Contains(t, checks["ledger_and_lists"].Summary, "This check took too long")
	require.Equal(t, job.Fine, checks["leases"].Severity, "the other checks are made all the same")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Diagnose(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSettingsThatASessionLacksAreReported(t *testing.T) {
	d, url := open(t)
	require.Equal(t, job.Fine, diagnose(t, d)["session_settings"].Severity)

	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, DirectURL: url})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	check := diagnose(t, New(db.Reads, job.Cell{}, nil))["session_settings"]
	require.Equal(t, job.Warning, check.Severity)
	require.Contains(t, check.Details, "enable_seqscan is on, not off")
	require.Contains(t, check.Details, "lock_timeout is 0, not 5s")
	require.NotContains(t, strings.Join(check.Details, "\n"), "timezone", "a pooler passes it on")
}

func TestWhatAFailoverWouldLoseIsReported(t *testing.T) {
	is := func(text string) *string { return &text }
	for name, c := range map[string]struct {
		rows     []standbyRow
		severity job.Severity
		says     string
	}{
		"no standby":             {[]standbyRow{{"on", "", nil, nil}}, job.Fine, "No standby is connected."},
		"one that commits await": {[]standbyRow{{"on", "a", is("a"), is("sync")}}, job.Fine, "1 standby is connected, and commits wait for 1 of them."},
		"one of two": {
			[]standbyRow{{"on", "any 1 (a, b)", is("a"), is("quorum")}, {"on", "any 1 (a, b)", is("c"), is("async")}},
			job.Fine, "2 standbys are connected, and commits wait for 1 of them.",
		},
		"asynchronous": {[]standbyRow{{"on", "", is("a"), is("async")}}, job.Warning, "standby a is asynchronous"},
		"gone":         {[]standbyRow{{"on", "a", nil, nil}}, job.Problem, "nothing can be accepted"},
		"not waited for": {
			[]standbyRow{{"local", "a", is("a"), is("sync")}}, job.Warning, "synchronous_commit is local: no commit waits for the standby",
		},
		"in its memory": {[]standbyRow{{"remote_write", "a", is("a"), is("sync")}}, job.Warning, "synchronous_commit is remote_write"},
		"hidden": {
			[]standbyRow{{"on", "a", is("a"), nil}},
			job.Warning,
			"1 standby is connected, and the database user may not see whether commits wait for it.\n1 standby could not be examined",
		},
		"hidden, and asynchronous": {[]standbyRow{{"on", "", is("a"), nil}}, job.Warning, "commits wait for 0 of them.\nstandby a is asynchronous"},
		"several hidden": {
			[]standbyRow{{"on", "a", is("a"), nil}, {"on", "a", is("b"), nil}},
			job.Warning,
			"2 standbys are connected, and the database user may not see whether commits wait for them.\n2 standbys could not be examined",
		},
	} {
		t.Run(name, func(t *testing.T) {
			check := judgeStandbys(c.rows)
			require.Equal(t, c.severity, check.Severity)
			require.Contains(t, check.Summary+"\n"+strings.Join(check.Details, "\n"), c.says)
		})
	}
}

func TestADiagnosisSeesStandbysAndADeposedPrimary(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	both := joined(t, pair.Primary, pair.Standby)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: both + "&target_session_attrs=read-write"})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	d := New(db.Reads, job.Cell{}, nil)
	found := diagnose(t, d)
	require.Equal(t, job.Warning, found["replication"].Severity)
	require.Contains(t, strings.Join(found["replication"].Details, "\n"), "is asynchronous")
	require.Equal(t, job.Fine, found["primary"].Severity, "%+v", found["primary"])

	pair.Promote(t)
	check := diagnose(t, d)["primary"]
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, strings.Join(check.Details, "\n"), "takes writes on timeline 2: the server that is in use, on timeline 1, was deposed")

	turned, err := postgres.Open(t.Context(), postgres.Config{URL: joined(t, pair.Standby, pair.Primary)})
	require.NoError(t, err)
	t.Cleanup(turned.Close)
	check = diagnose(t, New(turned.Reads, job.Cell{}, nil))["primary"]
	require.Contains(t, strings.Join(check.Details, "\n"), "still takes writes, on timeline 1: the primary is the server that is in use, on timeline 2")
}

func TestADiagnosisSeesThatNewConnectionsReachAnotherServer(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	proxy := pgtest.Between(t, pair.Primary)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: proxy.URL})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	d := New(db.Reads, job.Cell{}, nil)
	require.Equal(t, job.Fine, diagnose(t, d)["primary"].Severity)
	pair.Promote(t)
	proxy.Lead(t, pair.Standby)
	check := diagnose(t, d)["primary"]
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, strings.Join(check.Details, "\n"), "no new connection reaches the server that is in use")
}

// joined is the URL of a database on two servers.
func joined(t testing.TB, first, second string) string {
	t.Helper()
	one, err := pgx.ParseConfig(first)
	require.NoError(t, err)
	two, err := pgx.ParseConfig(second)
	require.NoError(t, err)
	return fmt.Sprintf("postgres:///%s?user=%s&host=%s,%s&port=%d,%d&sslmode=disable", one.Database, one.User, one.Host, two.Host, one.Port, two.Port)
}
