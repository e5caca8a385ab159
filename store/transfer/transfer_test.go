package transfer

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/fullledger"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) {
	segmentRows, segmentBytes = 200, 1<<20
	pgtest.Main(m)
}

// someJobs make several segments in two tables.
const someJobs = 700

func unseen(Progress) {}

func open(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	return conn
}

func exec(t testing.TB, url, statement string) {
	t.Helper()
	require.NoError(t, execute(t, url, statement))
}

func execute(t testing.TB, url, statement string) error {
	t.Helper()
	conn := open(t, url)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err := conn.Exec(t.Context(), statement)
	return err
}

func ask[T any](t testing.TB, url, query string) T {
	t.Helper()
	conn := open(t, url)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	rows, err := conn.Query(t.Context(), query)
	require.NoError(t, err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return value
}

// filled is a database with a ledger.
func filled(t testing.TB, jobs int) string {
	t.Helper()
	url := pgtest.URL(t)
	require.NoError(t, fullledger.Fill(t.Context(), url, jobs))
	return url
}

// exportTo exports to a new file.
func exportTo(t testing.TB, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.ndjson")
	_, err := Export(t.Context(), url, path, unseen)
	require.NoError(t, err)
	return path
}

// content is the text of every row of the tables that move, sorted: what PostgreSQL says
// of them, without any code of the package.
func content(t testing.TB, url string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, table := range moved {
		found[table] = ask[string](t, url, fmt.Sprintf(
			`select count(*) || ' rows ' || md5(coalesce(string_agg(md5(r::text), '' order by md5(r::text)), '')) from %s r`, table))
	}
	return found
}

func requireNothingIn(t testing.TB, url string) {
	t.Helper()
	require.Zero(t, ask[int](t, url, "select count(*) from jobs"))
	require.NoError(t, Check(t.Context(), url))
}

func TestEveryTableMovesOrIsNamedAsLeftOut(t *testing.T) {
	url := pgtest.URL(t)
	tables := ask[[]string](t, url, "select array_agg(relname::text order by relname) from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')")
	require.ElementsMatch(t, allTables(), tables, "a table that a migration adds must be in moved or in leftOut")
	for table, why := range leftOut {
		require.NotEmpty(t, why, table)
	}
	require.Equal(t, []string{"jobs_legal_birth"}, ask[[]string](t, url, `
		select array_agg(tgname::text) from pg_trigger where not tgisinternal and tgtype & 4 > 0 and tgrelid = 'jobs'::regclass`),
		"the triggers that an inserted job meets")
}

func TestAMovedLedgerIsTheSameRowByRow(t *testing.T) {
	source, target := filled(t, someJobs), pgtest.URL(t)
	for _, table := range moved {
		require.NotZero(t, ask[int](t, source, "select count(*) from "+table), "rows in %s", table)
	}
	before := content(t, source)
	path := exportTo(t, source)
	require.Equal(t, before, content(t, source))
	report, err := Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.Equal(t, before, content(t, target))
	require.EqualValues(t, someJobs, report.Jobs)
	for table := range leftOut {
		if table != "goose_db_version" {
			require.Zero(t, ask[int](t, target, "select count(*) from "+table), table)
		}
	}
	require.EqualValues(t, 31, ask[int64](t, target, "insert into audit_log (actor, action) values ('ann', 'x') returning audit_id"),
		"no id is given twice, not even of a row that is gone")
	require.Equal(t, "O", ask[string](t, target, "select tgenabled::text from pg_trigger where tgname = 'jobs_legal_birth'"))
	require.NoError(t, Check(t.Context(), target))
	require.NoFileExists(t, path+unfinished)
}

func TestAnExportedLedgerRefusesEveryChangeUntilItIsReopened(t *testing.T) {
	source := filled(t, 100)
	exportTo(t, source)
	require.ErrorIs(t, Check(t.Context(), source), ErrClosed)
	require.ErrorContains(t, Check(t.Context(), source), "it was exported at 20")
	for _, table := range allTables() {
		if table == "goose_db_version" {
			continue
		}
		for _, statement := range []string{"delete from " + table, "truncate " + table + " cascade", "insert into " + table + " select * from " + table + " limit 0"} {
			if table == "schedules" || table == "audit_log" {
				statement = strings.Replace(statement, "insert into "+table+" select *", "insert into "+table+" (tenant) select tenant", 1)
			}
			err := execute(t, source, statement)
			require.ErrorContains(t, err, "the ledger is closed: it was exported at 20", statement)
			require.ErrorContains(t, err, "25006", "a program takes it for a database that is not available")
		}
	}
	reopened, err := Reopen(t.Context(), source)
	require.NoError(t, err)
	require.True(t, reopened)
	require.NoError(t, Check(t.Context(), source))
	exec(t, source, "delete from jobs")
	reopened, err = Reopen(t.Context(), source)
	require.NoError(t, err)
	require.False(t, reopened)
}

func TestNothingIsExportedWhileSomebodyWorks(t *testing.T) {
	for name, c := range map[string]struct{ statement, complaint string }{
		"an orchestrator": {
			"update workers set alive_until = now() + interval '1 minute'", "orchestrators work on the ledger; stop them first (one that crashed counts as alive for a while): worker-1 until",
		},
		"a job with a lease": {
			"insert into leases select job_id, gen_random_uuid(), 1, 'w', now(), now() from ready limit 1", "jobs have leases of orchestrators that crashed (1)",
		},
		"a list that lacks a job": {"delete from ready where job_id = (select max(job_id::text)::uuid from ready)", "the ledger and its lists disagree"},
	} {
		t.Run(name, func(t *testing.T) {
			source := filled(t, 100)
			exec(t, source, c.statement)
			path := filepath.Join(t.TempDir(), "ledger.ndjson")
			_, err := Export(t.Context(), source, path, unseen)
			require.ErrorContains(t, err, c.complaint)
			require.NoError(t, Check(t.Context(), source), "the ledger stays open")
			require.NoFileExists(t, path+unfinished)
		})
	}
}

func TestOnlyAnEmptyDatabaseOfTheSameSchemaIsImportedInto(t *testing.T) {
	path := exportTo(t, filled(t, 100))
	for name, c := range map[string]struct{ statement, complaint string }{
		"a job type":     {"insert into type_owners (job_type, plugin) values ('A', 'b')", "the database is not empty, as type_owners has rows (1)"},
		"a worker":       {"insert into workers (worker_id, alive_until, host, pid, pid_started) values ('w', now(), 'h', 1, 1)", "as workers has rows (1)"},
		"an event":       {"update last_event set id = 5", "as last_event has rows (1)"},
		"another schema": {"insert into goose_db_version (version_id, is_applied) values (9999, true)", "and the database 9999"},
		"another column": {"alter table slots add column more int", "the file has other columns of slots than the database"},
	} {
		t.Run(name, func(t *testing.T) {
			target := pgtest.URL(t)
			exec(t, target, c.statement)
			_, err := Import(t.Context(), target, job.Cell{}, path, unseen)
			require.ErrorContains(t, err, c.complaint)
			requireNothingIn(t, target)
		})
	}
	_, err := Import(t.Context(), pgtest.EmptyURL(t), job.Cell{}, path, unseen)
	require.ErrorContains(t, err, "orchestrator migrate up")
	source := filled(t, 100)
	exportTo(t, source)
	_, err = Import(t.Context(), source, job.Cell{}, path, unseen)
	require.ErrorContains(t, err, "this database cannot be imported into: the ledger is closed: it was exported")
}

func TestASpoiledFileIsFoundBeforeAnythingIsWritten(t *testing.T) {
	whole, err := os.ReadFile(exportTo(t, filled(t, 60)))
	require.NoError(t, err)
	target := pgtest.URL(t)
	refused := func(what string, content []byte) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "spoiled")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err := Import(t.Context(), target, job.Cell{}, path, unseen)
		require.ErrorContains(t, err, path+", line ", what)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		at := random.IntN(len(whole))
		refused(fmt.Sprint("cut after ", at), whole[:at])
		spoiled := bytes.Clone(whole)
		spoiled[at] ^= 1 << random.IntN(8)
		refused(fmt.Sprint("another bit at ", at), spoiled)
	}
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	lines = lines[:len(lines)-1]
	for i := range lines {
		if i%37 == 0 || lines[i][0] == '{' {
			refused(fmt.Sprint("without line ", i), bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil))
			refused(fmt.Sprint("with line twice ", i), bytes.Join(slices.Insert(slices.Clone(lines), i, lines[i]), nil))
		}
	}
	refused("more after the end", append(bytes.Clone(whole), '\n'))
	requireNothingIn(t, target)
}

func TestAFileOfAnotherFormatIsRefused(t *testing.T) {
	for first, complaint := range map[string]string{
		`{"format":"holdfast-ledger","version":2,"new":1}`: "line 1: the file has the format 2, and this program knows 1",
		`{"type":"ECHO"}`: "line 1: it is not the beginning of a file of `orchestrator export`",
	} {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte(first+"\n"), 0o600))
		_, err := Read(t.Context(), path, unseen)
		require.ErrorContains(t, err, complaint)
	}
	_, err := Read(t.Context(), "/dev/null", unseen)
	require.ErrorContains(t, err, "/dev/null is not a regular file")
}

// Wherever the export was killed, the file becomes the same.
func TestAnInterruptedExportGoesOnWhereItWas(t *testing.T) {
	source := filled(t, someJobs)
	path := exportTo(t, source)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 12 {
		again := filepath.Join(t.TempDir(), "again")
		partial := bytes.Clone(whole[:random.IntN(len(whole))])
		if i == 0 {
			partial = whole[:100] // of the first line
		}
		if i%3 == 2 { // a crash of the machine has left what was never written
			copy(partial[len(partial)/2:], make([]byte, 1000))
		}
		require.NoError(t, os.WriteFile(again+unfinished, partial, 0o600))
		report, err := Export(t.Context(), source, again, unseen)
		require.NoError(t, err)
		got, err := os.ReadFile(again)
		require.NoError(t, err)
		require.True(t, bytes.Equal(whole, got), "cut after %d", len(partial))
		if len(partial) > len(whole)/2 && i%3 != 2 {
			require.GreaterOrEqual(t, report.Resumed, segmentRows)
		}
	}

	ours, err := openPartial(path + "2" + unfinished)
	require.NoError(t, err)
	_, err = Export(t.Context(), source, path+"2", unseen)
	require.ErrorContains(t, err, "another export writes")
	require.NoError(t, ours.Close())

	_, err = Reopen(t.Context(), source)
	require.NoError(t, err)
	for _, other := range [][]byte{whole[:len(whole)/2], []byte("my notes")} {
		require.NoError(t, os.WriteFile(path+"3"+unfinished, other, 0o600))
		_, err = Export(t.Context(), source, path+"3", unseen)
		require.ErrorContains(t, err, "remove it")
		found, err := os.ReadFile(path + "3" + unfinished)
		require.NoError(t, err)
		require.Equal(t, other, found)
	}
}

// stopAfter cancels a context when so many segments were done in a step.
func stopAfter(t testing.TB, step string, segments int) (context.Context, func(Progress)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, func(at Progress) {
		if at.Step == step {
			if segments--; segments < 0 {
				cancel()
			}
		}
	}
}

func TestAnInterruptedImportGoesOnWhereItWas(t *testing.T) {
	source, target := filled(t, someJobs), pgtest.URL(t)
	path := exportTo(t, source)
	another := exportTo(t, filled(t, 100))
	before := content(t, source)
	last := -1
	for _, step := range []string{Writing, Writing, Writing, Analyzing, Comparing} {
		ctx, note := stopAfter(t, step, 2)
		_, err := Import(ctx, target, job.Cell{}, path, note)
		require.Error(t, err, step)
		require.Error(t, ctx.Err(), step)
		now := ask[int](t, target, "select rows from ledger_closure")
		require.Greater(t, now, last)
		if last = now; step != Writing {
			last-- // all are in
		}
		require.ErrorIs(t, Check(t.Context(), target), ErrClosed)
		require.ErrorContains(t, Check(t.Context(), target), "`orchestrator import` with the same file continues it")
		require.ErrorContains(t, execute(t, target, "delete from ready"), "an import has not finished")
		_, err = Import(t.Context(), target, job.Cell{}, another, unseen)
		require.ErrorContains(t, err, "this database has half of another file")
		_, err = Reopen(t.Context(), target)
		require.ErrorContains(t, err, "to give the import up, drop the database")
		_, err = Export(t.Context(), target, path+"2", unseen)
		require.ErrorIs(t, err, ErrClosed)
	}
	report, err := Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.Equal(t, report.Rows, report.Resumed)
	require.False(t, report.Already)
	require.Equal(t, before, content(t, target))
}

// A trigger spoils a row as it arrives: only the comparison at the end can tell.
func TestADatabaseThatIsNotLikeTheFileStaysClosed(t *testing.T) {
	path := exportTo(t, filled(t, 100))
	target := pgtest.URL(t)
	exec(t, target, `create function spoil() returns trigger language plpgsql as $$ begin new.used := new.used + 1; return new; end $$;
		create trigger spoil before insert on slots for each row when (new.gate = 'key:smtp:7') execute function spoil()`)
	_, err := Import(t.Context(), target, job.Cell{}, path, unseen)
	require.ErrorContains(t, err, "the database has other rows in slots than the file: drop the database")
	require.ErrorIs(t, Check(t.Context(), target), ErrClosed)
}

// Constraints are PostgreSQL's to check, whatever a file says.
func TestAFileCannotBringWhatTheSchemaForbids(t *testing.T) {
	source := filled(t, 100)
	exec(t, source, "alter table slots drop constraint slots_pkey; insert into slots (gate) values ('key:smtp:7')")
	target := pgtest.URL(t)
	_, err := Import(t.Context(), target, job.Cell{}, exportTo(t, source), unseen)
	require.ErrorContains(t, err, "write slots from row 0 on")
	require.ErrorContains(t, err, "slots_pkey")
	require.ErrorIs(t, Check(t.Context(), target), ErrClosed)
}

func TestAUserWhoOwnsTheDatabaseCanMoveIt(t *testing.T) {
	source, target := filled(t, 1000), pgtest.URL(t)
	path := exportTo(t, source)
	exec(t, target, `do $$ begin
		if not exists (select from pg_roles where rolname = 'transfer_owner') then create role transfer_owner login; end if;
	end $$`)
	defer exec(t, target, "reassign owned by transfer_owner to current_user; drop owned by transfer_owner; drop role transfer_owner")
	for _, table := range allTables() {
		exec(t, target, "alter table "+quoted(table)+" owner to transfer_owner")
	}
	exec(t, target, "grant create on schema public to transfer_owner")
	owner, err := pgx.ParseConfig(target)
	require.NoError(t, err)
	_, err = Import(t.Context(), fmt.Sprintf("%s user=transfer_owner", keywords(owner)), job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.Equal(t, content(t, source), content(t, target))
}

func keywords(c *pgx.ConnConfig) string {
	return fmt.Sprintf("host=%s port=%d dbname=%s password=%s sslmode=disable", c.Host, c.Port, c.Database, "'"+strings.ReplaceAll(c.Password, "'", `\'`)+"'")
}

func TestSegmentsAreCutByBytesToo(t *testing.T) {
	source, target := filled(t, 100), pgtest.URL(t)
	exec(t, source, `update jobs set payload = to_json(repeat('x', 250 << 10)) where job_id in (select job_id from jobs order by 1 limit 9)`)
	before := content(t, source)
	path := exportTo(t, source)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(text, []byte(`{"table":"jobs"`)))
	_, err = Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.Equal(t, before, content(t, target))
}

func TestTheLongestStepsAreShown(t *testing.T) {
	source, target := filled(t, someJobs), pgtest.URL(t)
	steps := make(map[string]bool)
	path := filepath.Join(t.TempDir(), "ledger")
	note := func(at Progress) {
		steps[at.Step] = true
		require.LessOrEqual(t, at.Rows, at.Of)
	}
	_, err := Export(t.Context(), source, path, note)
	require.NoError(t, err)
	_, err = Import(t.Context(), target, job.Cell{}, path, note)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{Checking, Reading, Writing, Analyzing, Comparing}, slices.Collect(maps.Keys(steps)))
}

func TestALedgerKeepsItsCell(t *testing.T) {
	ofCell := func(number int) string {
		url := pgtest.URL(t)
		exec(t, url, fmt.Sprintf("insert into cell (number) values (%d)", number))
		return url
	}
	source := filled(t, 100)
	exec(t, source, "insert into cell (number) values (3)")
	path := exportTo(t, source)

	for name, target := range map[string]string{"into no cell": pgtest.URL(t), "into the same": ofCell(3)} {
		_, err := Import(t.Context(), target, job.Cell{}, path, unseen)
		require.NoError(t, err, name)
		require.EqualValues(t, 3, ask[int16](t, target, "select number from cell"), name)
	}
	other := ofCell(4)
	_, err := Import(t.Context(), other, job.Cell{}, path, unseen)
	require.ErrorContains(t, err, "the file is of cell 3, and the database is cell 4")
	requireNothingIn(t, other)

	empty := pgtest.URL(t)
	for name, c := range map[string]struct {
		url, complaint string
		configured     job.Cell
	}{
		"another than the file": {empty, "the file is of cell 3, and database.cell is 9", job.CellOf(9)},
		"zero, which is one":    {empty, "the file is of cell 3, and database.cell is 0", job.CellOf(0)},
		"another than both":     {ofCell(3), "the database is cell 3, and database.cell is 9", job.CellOf(9)},
		"that of the file only": {other, "the database is cell 4, and database.cell is 3", job.CellOf(3)},
		"that of the database":  {other, "the file is of cell 3, and the database is cell 4", job.CellOf(4)},
	} {
		_, err := Import(t.Context(), c.url, c.configured, path, unseen)
		require.ErrorIs(t, err, job.ErrWrongCell, name)
		require.ErrorContains(t, err, c.complaint, name)
		requireNothingIn(t, c.url)
	}
	ctx, note := stopAfter(t, Analyzing, 0)
	_, err = Import(ctx, empty, job.CellOf(3), path, note)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Import(t.Context(), empty, job.CellOf(9), path, unseen)
	require.ErrorContains(t, err, "database.cell is 9", "the configuration may have changed since the import began")
	_, err = Import(t.Context(), empty, job.CellOf(3), path, unseen)
	require.NoError(t, err)

	unstamped := exportTo(t, filled(t, 100))
	_, err = Import(t.Context(), other, job.Cell{}, unstamped, unseen)
	require.NoError(t, err, "jobs of no cell may be in any")
	require.EqualValues(t, 4, ask[int16](t, other, "select number from cell"))
}
