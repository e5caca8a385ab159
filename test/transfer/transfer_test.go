// Package transfer moves ledgers with the real program: one of an embedded PostgreSQL in
// which a real orchestrator has worked, and a large one with jobs in all states, while the
// commands are killed again and again.
//
// HOLDFAST_TEST_TRANSFER=full moves a million jobs.
package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/fullledger"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// full says that the test has its full length.
var full = os.Getenv("HOLDFAST_TEST_TRANSFER") == "full"

// bin is the directory of the tested programs.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/transfer", "../../cmd/orchestrator", "../../cmd/handlers"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// command is a run of the program.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), args...)
	c.Dir = dir
	return c
}

// run returns what the program prints, and requires its exit code.
func run(t *testing.T, dir string, code int, args ...string) string {
	t.Helper()
	c := command(t, dir, args...)
	output, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	require.Equal(t, code, c.ProcessState.ExitCode(), "%s", output)
	return string(output)
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func count(t *testing.T, conn *pgx.Conn, query string) (n int64) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestALedgerMovesFromTheEmbeddedPostgreSQLToAServer(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { // as root, it is a link to where PostgreSQL's user can reach it
		if place, err := os.Readlink(filepath.Join(dir, "data")); err == nil {
			require.NoError(t, os.RemoveAll(place))
		}
	})
	config := fmt.Sprintf("plugins:\n  - {name: builtin, path: %s, start_timeout: 2m}\nembedded: {data_dir: data}\nworker: {drain_timeout: 1ms}\n", filepath.Join(bin, "handlers"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600))
	program := filepath.Join(bin, "orchestrator")
	old := rigtest.New(t, program, dir)
	rigtest.Start(t, old)
	submit := func(o *rig.Orchestrator, body map[string]any) string {
		var answer rig.Job
		require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs", body, http.StatusAccepted, &answer))
		return answer.ID
	}
	sleep := func(seconds int) map[string]any {
		return map[string]any{"jobType": "SLEEP_JOB", "payload": map[string]any{"sleepSeconds": seconds}}
	}
	done := submit(old, sleep(1))
	rigtest.Await(t, old, done, "COMPLETED")
	dead := submit(old, map[string]any{"jobType": "FAIL_JOB", "payload": map[string]any{}, "maxAttempts": 1})
	rigtest.Await(t, old, dead, "FAILED")
	keyed := sleep(1)
	keyed["idempotencyKey"] = "one"
	first := submit(old, keyed)
	scheduled := sleep(1)
	scheduled["runAt"] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	later := submit(old, scheduled)
	limited := func() string {
		body := sleep(2)
		body["concurrencyKey"], body["concurrencyLimit"] = "smtp", 1
		return submit(old, body)
	}
	holder, parked := limited(), limited() // the first runs when the orchestrator stops, and is given back
	rigtest.Await(t, old, holder, "RUNNING")
	alive := run(t, dir, 1, "export", "ledger.ndjson")
	require.Contains(t, alive, "orchestrators work on the ledger; stop them first")
	ctx, cancel := context.WithTimeout(t.Context(), rigtest.Patience)
	defer cancel()
	require.NoError(t, old.ShutDown(ctx))

	target := pgtest.EmptyURL(t)
	database := []string{"--set", "database.url=" + target}
	require.Contains(t, run(t, dir, 1, append(database, "import", "nothing")...), "run `orchestrator migrate up`")
	require.Contains(t, run(t, dir, 1, "--set", "database.cell=5", "export", "ledger.ndjson"), "cell 5")
	require.Contains(t, run(t, dir, 0, "export", "ledger.ndjson"), "exported 6 jobs and")
	require.Contains(t, run(t, dir, 0, "import", "--check", "ledger.ndjson"), "checked 6 jobs and")
	run(t, dir, 0, append(database, "migrate", "up")...)
	require.Contains(t, run(t, dir, 0, append(database, "import", "ledger.ndjson")...), "imported 6 jobs and")

	require.Contains(t, run(t, dir, 1, "serve", "--set", "server.address=127.0.0.1:0"), "the ledger is closed: it was exported at 20")
	require.Contains(t, run(t, dir, 1, "migrate", "up"), "the ledger is closed")
	require.Contains(t, run(t, dir, 0, "list", "--direct"), later, "it can still be read")
	diagnosis := run(t, dir, 3, "doctor", "--direct")
	require.Contains(t, diagnosis, "The ledger is closed: it was exported at 20")
	require.Contains(t, diagnosis, "Use the database that it was imported into")
	require.NotContains(t, diagnosis, "Start an orchestrator")
	require.Contains(t, run(t, dir, 1, "cancel", later, "--direct"), "the ledger is closed: it was exported at 20")

	moved := rigtest.New(t, program, dir, "database.url="+target)
	rigtest.Start(t, moved)
	require.Equal(t, first, submit(moved, keyed), "a replay finds its job")
	for _, id := range []string{first, holder, parked} {
		rigtest.Await(t, moved, id, "COMPLETED")
	}
	rigtest.Await(t, moved, done, "COMPLETED")
	rigtest.Await(t, moved, dead, "FAILED")
	rigtest.Await(t, moved, later, "PENDING")
	require.NoError(t, moved.Call(t.Context(), http.MethodPost, "/jobs/"+later+"/release", nil, http.StatusOK, nil))
	rigtest.Await(t, moved, later, "COMPLETED")
	require.NoError(t, moved.Call(t.Context(), http.MethodPost, "/jobs/"+dead+"/requeue", nil, http.StatusOK, nil))
	rigtest.Await(t, moved, dead, "FAILED")
	sound(t, target)
}

// sound requires that the ledger and its lists agree.
func sound(t *testing.T, url string) {
	t.Helper()
	s := storetest.Open(t, url, 4)
	checks, err := s.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ledger_and_lists", checks[0].Name)
	require.Equal(t, job.Fine, checks[0].Severity, checks[0])
}

func TestALedgerInAllStatesMovesWholeWhileTheCommandsAreKilled(t *testing.T) {
	jobs, kills := 25_000, 2
	if full {
		jobs, kills = 1_000_000, 10
	}
	source, target, dir := pgtest.URL(t), pgtest.URL(t), t.TempDir()
	require.NoError(t, fullledger.Fill(t.Context(), source, jobs))
	sound(t, source)
	from, to := connect(t, source), connect(t, target)
	_, err := from.Exec(t.Context(), "analyze")
	require.NoError(t, err)

	path := filepath.Join(dir, "ledger.ndjson")
	began := time.Now()
	killed := 0
	written := func() int64 {
		at, err := os.Stat(path + ".partial")
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			return 0
		}
		return at.Size()
	}
	size := int64(jobs) * 700 // about
	for ; killed < kills; killed++ {
		if !killWhen(t, command(t, dir, "--set", "database.url="+source, "export", path), func() bool { return written() > size*int64(killed+1)/int64(kills+1) }) {
			break
		}
	}
	var exported struct {
		Rows, Jobs, Resumed, Bytes int64
		SHA256                     string
		Tables                     map[string]int64
	}
	if _, err := os.Stat(path); err != nil {
		require.NoError(t, json.Unmarshal([]byte(run(t, dir, 0, "--set", "log.level=error", "--set", "database.url="+source, "export", "--json", path)), &exported))
	} else {
		require.NoError(t, json.Unmarshal([]byte(run(t, dir, 0, "import", "--check", "--json", path)), &exported))
	}
	t.Logf("export: %d jobs, %d rows, %d MB in %s, with %d kills; %d rows were there before the last run",
		exported.Jobs, exported.Rows, exported.Bytes>>20, time.Since(began).Round(time.Second/10), killed, exported.Resumed)
	require.EqualValues(t, jobs, exported.Jobs)
	require.NotZero(t, killed)

	began, killed = time.Now(), 0
	in := func() int64 {
		if count(t, to, "select count(*) from pg_class where relname = 'ledger_closure'") == 0 {
			return 0
		}
		return count(t, to, "select rows from ledger_closure")
	}
	for ; killed < kills; killed++ {
		if !killWhen(t, command(t, dir, "--set", "database.url="+target, "import", path), func() bool { return in() > exported.Rows*int64(killed)/int64(kills+1) }) {
			break
		}
		require.Contains(t, run(t, dir, 1, "serve", "--set", "server.address=127.0.0.1:0", "--set", "database.url="+target), "the ledger is closed: an import")
	}
	require.Equal(t, kills, killed)
	// The server may still be ending the transaction of the process that was killed.
	output := run(t, dir, 0, "--set", "log.level=error", "--set", "database.url="+target, "import", path)
	require.Contains(t, output, "of them before")
	t.Logf("import: %s, with %d kills: %s", time.Since(began).Round(time.Second/10), killed, strings.TrimSpace(output))

	sound(t, target)
	rows := int64(0)
	for table, want := range exported.Tables {
		require.Equal(t, want, sameRows(t, from, to, table), table)
		rows += want
	}
	require.Equal(t, exported.Rows, rows)
}

// Whoever loses the connection to a machine runs the command again, and the first may live on.
func TestACommandIsRefusedWhileAnotherIsAtWorkEvenIfItStandsStill(t *testing.T) {
	source, target, dir := pgtest.URL(t), pgtest.URL(t), t.TempDir()
	require.NoError(t, fullledger.Fill(t.Context(), source, 25_000))
	_, err := connect(t, source).Exec(t.Context(), "insert into cell (number) values (0)")
	require.NoError(t, err)
	to := connect(t, target)
	path := filepath.Join(dir, "ledger.ndjson")
	into := func(args ...string) []string { return append([]string{"--set", "database.url=" + target}, args...) }
	require.Contains(t, run(t, dir, 1, "--set", "database.cell=9", "--set", "database.url="+source, "export", path), "the database is cell 0")
	run(t, dir, 0, "--set", "database.url="+source, "export", path)
	require.Contains(t, run(t, dir, 1, into("--set", "database.cell=9", "import", path)...), "the file is of cell 0, and database.cell is 9")
	require.Contains(t, run(t, dir, 1, "--set", "database.cell=9", "--set", "database.url="+source, "export", "--reopen"), "the database is cell 0")

	first := command(t, dir, into("import", path)...)
	var output bytes.Buffer
	first.Stdout, first.Stderr = &output, &output
	require.NoError(t, first.Start())
	require.Eventually(t, func() bool {
		return count(t, to, "select count(*) from pg_class where relname = 'ledger_closure'") > 0 && count(t, to, "select rows from ledger_closure") > 0
	}, rigtest.Patience, 5*time.Millisecond)
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
	refused := map[string]*exec.Cmd{} // each waits for some seconds, so they do that together
	outputs := map[string]*bytes.Buffer{}
	for name, args := range map[string][]string{"import": {"import", path}, "export": {"export", path + "2"}, "reopen": {"export", "--reopen"}} {
		c, said := command(t, dir, into(args...)...), &bytes.Buffer{}
		c.Stdout, c.Stderr = said, said
		require.NoError(t, c.Start())
		refused[name], outputs[name] = c, said
	}
	for name, c := range refused {
		require.Error(t, c.Wait(), name)
		require.Contains(t, outputs[name].String(), "another import or export is running on this database; wait until it is done", name)
	}
	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	require.NoError(t, first.Wait(), output.String())
	require.Contains(t, output.String(), "imported 25,000 jobs")
	sound(t, target)
	require.Contains(t, run(t, dir, 0, into("import", path)...), "was imported into this database already: 25,000 jobs")
	require.Contains(t, run(t, dir, 0, "--set", "database.url="+source, "export", path), "is the complete export of this database already: 25,000 jobs")
	require.Contains(t, run(t, dir, 0, "--set", "log.level=error", "--set", "database.url="+source, "export", "--json", path), `"already":true`)
	require.NoFileExists(t, path+"2.partial")
}

// killWhen kills the process when ready returns true. It returns false if the process ended
// before that.
func killWhen(t *testing.T, c *exec.Cmd, ready func() bool) bool {
	t.Helper()
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			require.NoError(t, err, output.String())
			return false
		case <-look.C:
			if ready() {
				require.NoError(t, c.Process.Kill())
				return <-ended != nil
			}
		}
	}
}

// sameRows requires that a table has the same rows in both databases, one by one, and
// returns how many. It shares no code with the product.
func sameRows(t *testing.T, from, to *pgx.Conn, table string) (n int64) {
	t.Helper()
	// The text of a row has every column; its hash makes an order that no collation changes.
	query := "select md5(r::text) collate \"C\" from " + table + " r order by 1"
	ours, err := from.Query(t.Context(), query)
	require.NoError(t, err)
	defer ours.Close()
	theirs, err := to.Query(t.Context(), query)
	require.NoError(t, err)
	defer theirs.Close()
	for ours.Next() {
		require.True(t, theirs.Next(), "%s: row %d is missing", table, n)
		if !bytes.Equal(ours.RawValues()[0], theirs.RawValues()[0]) {
			t.Fatalf("%s: row %d differs", table, n)
		}
		n++
	}
	require.False(t, theirs.Next(), "%s has more rows", table)
	require.NoError(t, ours.Err())
	require.NoError(t, theirs.Err())
	return n
}
