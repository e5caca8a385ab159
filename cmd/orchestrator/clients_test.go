package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestServerAndDatabaseGiveTheSameAnswers(t *testing.T) {
	t.Chdir(t.TempDir())
	const good, odd = `{"jobType":"ECHO","payload":{"n":1}}`, `{"jobType":"ECHO","payload":{"n":"x"}}`
	for name, lines := range map[string][]string{
		"good.ndjson": {good, "", good}, "odd.ndjson": {good, "", odd}, "jobs.ndjson": {good, "", odd, "not json"},
	} {
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	served, straight := newLedger(t), newLedger(t)
	server := []string{"HOLDFAST_SERVER=" + served.serve(t, nil)}
	database := []string{"HOLDFAST_DATABASE__URL=" + straight.url}

	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{args: []string{"list"}, says: "SUCCEEDED ECHO COMPLETED"},
		{args: []string{"list", "--all"}, says: "HELD"},
		{args: []string{"list", "--status", "FAILED", "--limit", "1"}, says: "DEAD2 ECHO FAILED"},
		{args: []string{"list", "--tag", "urgent", "--type", "ECHO", "--tenant", "default"}, says: "QUEUED"},
		{args: []string{"list", "--status", "NONE"}, code: 1, says: "query.status: must be one of PENDING"},
		{args: []string{"list", "--cursor", "x"}, code: 1, says: "query.cursor: "},
		{args: []string{"get", "SUCCEEDED"}, says: `RESULT {"text":"\u001b[2J"}`},
		{args: []string{"get", "SUCCEEDED", "--wait"}, says: "COMPLETED"},
		{args: []string{"get", "DEAD", "--wait"}, code: 3, says: "FAILED"},
		{args: []string{"get", "QUEUED", "--wait=50ms"}, code: 1, says: "the job is still PENDING after"},
		{args: []string{"get", "00000000-0000-7000-8000-000000000000"}, code: 1, says: "no such job"},
		{args: []string{"get", "x"}, code: 1, says: "path.id: "},
		{args: []string{"inspect", "DEAD"}, says: `BROKEN: it broke\nbadly`},
		{args: []string{"inspect", "HELD"}, says: "until it is released"},
		{args: []string{"inspect", "QUEUED"}, says: "PRIORITY 9"},
		{args: []string{"job-types"}, says: "ECHO test v1"},
		{args: []string{"job-types", "ECHO"}, says: "exponential"},
		{args: []string{"job-types", "ECHO", "--schema"}, says: `"integer"`},
		{args: []string{"job-types", "NONE"}, code: 1},
		{args: []string{"dead-letter", "list"}, says: "DEAD ECHO default"},
		{args: []string{"dead-letter", "groups"}, says: "TYPE CODE FINGERPRINT JOBS"},
		{args: []string{"workers"}, says: "worker-1 17 all alive"},
		{args: []string{"queues"}, says: "ECHO"},
		{args: []string{"metrics"}, says: "ECHO"},
		{args: []string{"submit", "ECHO", "--payload", `{"n":2}`, "--key", "k"}, says: "PENDING"},
		{args: []string{"submit", "ECHO", "--payload", `{"n":3}`, "--key", "k"}, code: 1, says: "#/idempotencyKey: "},
		{args: []string{"submit", "ECHO", "--payload", `{"n":"x"}`}, code: 1, says: "#/payload/n"},
		{args: []string{"submit", "NONE"}, code: 1, says: "#/jobType: "},
		{args: []string{"submit", "ECHO", "--delay", "soon", "--priority", "99999"}, code: 1, says: "#/priority"},
		{args: []string{"hold", "SCHEDULED"}, says: "PENDING"},
		{args: []string{"release", "SCHEDULED", "HELD"}, says: "HELD ECHO PENDING"},
		{args: []string{"release", "SUCCEEDED"}, code: 1, says: "release SUCCEEDED: the job's state does not allow this"},
		{args: []string{"requeue", "DEAD", "QUEUED"}, code: 1, says: "requeue QUEUED: the job is not dead-lettered"},
		{args: []string{"cancel", "QUEUED", "HELD"}, says: "HELD ECHO CANCELED"},
		{args: []string{"dead-letter", "retry"}, says: "1 job requeued"},
		{args: []string{"dead-letter", "retry", "--all"}, says: "0 jobs requeued"},
		{args: []string{"submit", "--batch", "jobs.ndjson"}, code: 1, says: "1 accepted, 2 refused in"},
		{args: []string{"submit", "--batch", "jobs.ndjson", "--json"}, code: 1, says: `{"done":true,"accepted":1,"refused":2}`},
		{args: []string{"submit", "--batch", "jobs.ndjson", "--atomic"}, code: 1, says: "line 4, column 2"},
		{args: []string{"submit", "--batch", "odd.ndjson", "--atomic"}, code: 1, says: "line 3: #/payload/n: "},
		{args: []string{"submit", "--batch", "good.ndjson", "--atomic"}, says: "2 accepted, 0 refused in"},
		{args: []string{"submit", "--batch", "good.ndjson", "--atomic", "--json"}, says: `{"index":1,"job":{`},
		{args: []string{"submit", "--batch", "missing.ndjson"}, code: 1, says: "no such file"},
	} {
		for _, format := range [][]string{nil, {"--json"}} {
			if format != nil && changes(test.args[0]) {
				continue
			}
			args := append(test.args, format...)
			over := executeWith(t, nil, server, served.fill(args)...)
			within := executeWith(t, nil, database, append(straight.fill(args), "--direct")...)
			require.Equal(t, test.code, over.code, "%s: %s", args, over.stderr)
			require.Equal(t, over.code, within.code, "%s: %s", args, within.stderr)
			require.Equal(t, served.plain(over.stdout), straight.plain(within.stdout), args)
			require.Equal(t, served.plain(over.stderr), straight.plain(within.stderr), args)
			if format == nil {
				require.Contains(t, served.plain(over.stdout+over.stderr), test.says, args)
			} else {
				for line := range strings.Lines(over.stdout) {
					require.True(t, json.Valid([]byte(line)), line)
				}
			}
		}
	}
}

func TestALongBatchIsStoredWhole(t *testing.T) {
	t.Chdir(t.TempDir())
	const lines = 20_000
	line := `{"jobType":"ECHO","payload":{"n":1,"text":"` + strings.Repeat("x", 500) + `"}}` + "\n"
	l := newLedger(t)
	for name, test := range map[string]struct {
		environ string
		flag    string
	}{
		"server":   {"HOLDFAST_SERVER=" + l.serve(t, nil), "--json"},
		"database": {"HOLDFAST_DATABASE__URL=" + l.url, "--direct"},
	} {
		t.Run(name, func(t *testing.T) {
			got := executeWith(t, strings.NewReader(strings.Repeat(line, lines)), []string{test.environ}, "submit", "--batch", "-", test.flag)
			require.Equal(t, exitOK, got.code, got.stderr)
			if test.flag == "--json" {
				require.Equal(t, lines+1, strings.Count(got.stdout, "\n"))
				require.True(t, strings.HasSuffix(got.stdout, `{"done":true,"accepted":20000,"refused":0}`+"\n"))
				return
			}
			require.Contains(t, got.stdout, "20,000 accepted, 0 refused in")
		})
	}
	counted, err := l.store.Metrics(t.Context(), time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 2*lines+1, counted.StatusCounts[job.Queued])
}

// changes reports whether a second run would do something else.
func changes(name string) bool {
	for _, reader := range []string{"list", "get", "inspect", "job-types", "workers", "queues", "metrics"} {
		if name == reader {
			return false
		}
	}
	return true
}

// They come out of files with a line end, and out of wrong files with more.
func TestCredentialsMayEndWithOneLineEnd(t *testing.T) {
	t.Chdir(t.TempDir())
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		_, _ = w.Write([]byte(`{"workers":[]}`))
	}))
	defer server.Close()
	for _, end := range []string{"", "\n", "\r\n"} {
		got := executeWith(t, nil, []string{"HOLDFAST_SERVER=" + server.URL + end, "HOLDFAST_TOKEN=s3cret" + end}, "workers")
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Equal(t, "Bearer s3cret", seen)
		got = executeWith(t, nil, []string{"HOLDFAST_SERVER=" + server.URL, "HOLDFAST_USER=u" + end, "HOLDFAST_PASSWORD=s3cret" + end}, "workers")
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("u:s3cret")), seen)
	}
	for _, variable := range []string{"HOLDFAST_TOKEN=s3\ncret", "HOLDFAST_TOKEN=s3cret\n\n", "HOLDFAST_TOKEN=s3 cret", "HOLDFAST_PASSWORD=s3\ncret"} {
		got := executeWith(t, nil, []string{"HOLDFAST_SERVER=" + server.URL, variable}, "workers")
		require.Equal(t, exitUsage, got.code, variable)
		name, _, _ := strings.Cut(variable, "=")
		require.Contains(t, got.stderr, "orchestrator: "+name+" contains a ")
		require.NotContains(t, got.stderr, "cret")
	}
}

func TestServerComesFromTheFlagThenTheEnvironmentThenTheConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct {
		environ, args []string
		want          string
	}{
		"flag":          {[]string{"HOLDFAST_SERVER=http://127.0.0.1:2"}, []string{"--server", "http://127.0.0.1:3"}, "http://127.0.0.1:3"},
		"environment":   {[]string{"HOLDFAST_SERVER=http://127.0.0.1:2", "HOLDFAST_SERVER__ADDRESS=127.0.0.1:4"}, nil, "http://127.0.0.1:2"},
		"configuration": {[]string{"HOLDFAST_SERVER__ADDRESS=127.0.0.1:4"}, nil, "http://127.0.0.1:4"},
		"every address": {[]string{"HOLDFAST_SERVER__ADDRESS=0.0.0.0:4"}, nil, "http://localhost:4"},
	} {
		t.Run(name, func(t *testing.T) {
			got := executeWith(t, nil, test.environ, append([]string{"list"}, test.args...)...)
			require.Equal(t, exitFailure, got.code)
			require.Contains(t, got.stderr, "orchestrator: no answer from "+test.want+": ")
			require.Contains(t, got.stderr, "orchestrator serve")
		})
	}
	got := executeWith(t, nil, nil, "list", "--server", "nonsense")
	require.Equal(t, exitUsage, got.code)
}

func TestCredentialsComeFromTheEnvironmentOrTheCredentialsFile(t *testing.T) {
	t.Chdir(t.TempDir())
	l := newLedger(t)
	url := l.serve(t, &guard.Access{
		User: "admin", Password: guard.DigestOf("p4ss:word"),
		Tokens: []guard.Token{{Name: "reader", Digest: guard.DigestOf("t0ken"), Scopes: []guard.Scope{guard.Read}}},
	})
	list := func(environ ...string) outcome {
		return executeWith(t, nil, append(environ, "HOLDFAST_SERVER="+url), "dead-letter", "list")
	}
	got := list()
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "There are none in "+mustAbs(t, "data/credentials")+". Set HOLDFAST_TOKEN, or HOLDFAST_USER and HOLDFAST_PASSWORD.")

	require.Equal(t, exitOK, list("HOLDFAST_USER=admin", "HOLDFAST_PASSWORD=p4ss:word").code)
	got = list("HOLDFAST_TOKEN=t0ken")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "the credentials do not allow this: it needs the scope observe")
	require.Contains(t, got.stderr, "The credentials in HOLDFAST_TOKEN do not allow this.")
	require.NotContains(t, got.stderr, "t0ken")

	require.NoError(t, os.MkdirAll("data", 0o700))
	require.NoError(t, os.WriteFile("data/credentials", []byte("admin:p4ss:word\n"), 0o600))
	require.Equal(t, exitOK, list().code, "as the server has made it")
	require.NoError(t, os.Chmod("data/credentials", 0o644))
	got = list()
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "The credentials file cannot be used: ")

	require.NoError(t, os.Chmod("data/credentials", 0o600))
	security := config.Security{User: "admin", CredentialsFile: "data/credentials"}
	require.Equal(t, "p4ss:word", loginOfFile("http://127.0.0.1:8080", security).Password)
	require.Empty(t, loginOfFile("http://192.0.2.1:8080", security), "they are for this machine alone")
	require.False(t, isLoopbackURL("http://192.0.2.1:8080"))
	require.True(t, isLoopbackURL("http://[::1]:8080"))
	require.True(t, isLoopbackURL("http://LocalHost:8080"))
	require.False(t, isLoopbackURL("http://localhost.example.com"))
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	require.NoError(t, err)
	return absolute
}

func TestDirectRefusesADatabaseWithAnotherSchema(t *testing.T) {
	t.Chdir(t.TempDir())
	url := pgtest.EmptyURL(t)
	environ := []string{"HOLDFAST_DATABASE__URL=" + url}
	got := executeWith(t, nil, environ, "list", "--direct")
	require.Equal(t, exitFailure, got.code)
	require.Regexp(t, "the schema of the database is at version 0, and this program needs [0-9]+: run `orchestrator migrate up`", got.stderr)

	require.Equal(t, exitOK, executeWith(t, nil, environ, "migrate", "up").code)
	require.Equal(t, exitOK, executeWith(t, nil, environ, "list", "--direct").code)

	db := &database{url: config.DatabaseURL(url)}
	require.NoError(t, db.isCurrent(t.Context()))
	pool := pgtest.Pool(t)
	_, err := pool.Exec(t.Context(), "create table if not exists goose_db_version (id integer primary key generated by default as identity, "+
		"version_id bigint not null, is_applied boolean not null, tstamp timestamp not null default now())")
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "insert into goose_db_version (version_id, is_applied) values (9999, true)")
	require.NoError(t, err)
	db.url = config.DatabaseURL(pool.Config().ConnString())
	require.ErrorContains(t, db.isCurrent(t.Context()), "at version 9999, and this program knows")
}

func TestCompletionStartsNoDatabase(t *testing.T) {
	t.Chdir(t.TempDir())
	got := executeWith(t, nil, nil, "list", "--direct")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "there is no database: database.url is not set")
	require.NoDirExists(t, "data")
}

func TestCompletionHidesErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("data/postgres", 0o700))
	for _, args := range [][]string{
		{"get", "--direct"},
		{"get", "--server", "http://127.0.0.1:1"},
		{"get", "--config", "missing.yaml"},
	} {
		got := executeWith(t, nil, nil, append(append([]string{"__complete"}, args...), "")...)
		require.Equal(t, exitOK, got.code)
		require.Equal(t, ":4\n", got.stdout)
		require.Equal(t, "Completion ended with directive: ShellCompDirectiveNoFileComp\n", got.stderr, "which shells throw away")
	}
	made, err := os.ReadDir("data/postgres")
	require.NoError(t, err)
	require.Empty(t, made, "no database is started for it")
}

func TestPluginCommandsNeedAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	got := executeWith(t, nil, nil, "plugins", "list", "--direct")
	require.Equal(t, exitUsage, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "the database knows nothing of them")
	require.Contains(t, got.stderr, "Name the server with --server or HOLDFAST_SERVER")

	got = executeWith(t, nil, nil, "plugins", "list", "--server", "http://127.0.0.1:1")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.stderr, "name another one with --server or HOLDFAST_SERVER.\n")
	require.NotContains(t, got.stderr, "--direct")

	got = executeWith(t, nil, nil, "plugins", "list", "--help")
	require.NotContains(t, got.stdout, "--direct")
}

func TestExitCodesDistinguishUsageFailureAndBadOutcome(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Equal(t, []int{1, 3}, []int{command.CodeFailed, command.CodeFound})
	for _, args := range [][]string{
		{"get"},
		{"get", "a", "b"},
		{"list", "--limit", "x"},
		{"list", "--limit", "0"},
		{"list", "--nope"},
		{"cancel"},
		{"submit", "X", "--payload", "{"},
		{"list", "--color", "pink"},
		{"dead-letter", "nope"},
		{"list", "--direct", "--server", "http://x"},
	} {
		got := executeWith(t, nil, nil, args...)
		require.Equal(t, exitUsage, got.code, "%s: %s", args, got.stderr)
		require.True(t, strings.HasPrefix(got.stderr, "orchestrator: "), got.stderr)
		require.Empty(t, got.stdout)
	}
}

func TestPagesOfCellsAreForThisMachineAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	two := []string{"ui", "--server", "0=http://127.0.0.1:1", "--server", "1=http://127.0.0.1:2"}
	for _, c := range []struct {
		args []string
		says string
	}{
		{append(two, "--listen", "0.0.0.0:8090"), "--listen 0.0.0.0:8090 is not an address of this machine alone, such as 127.0.0.1:8090"},
		{append(two, "--listen", "example.com:8090"), "is not an address of this machine alone"},
		{append(two, "--listen", ":8090"), "is not an address of this machine alone"},
		{[]string{"ui", "--server", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"}, "--listen is for the pages of several cells"},
		{append(two, "--cells", "cells"), "use --server or --cells, not both"},
	} {
		refused := executeWith(t, strings.NewReader(""), nil, c.args...)
		require.Equal(t, 2, refused.code, c.args)
		require.Contains(t, refused.stderr, c.says)
	}
}

func TestPagesOfCellsLetInWhoHasTheCredentialsThatTheCellsGet(t *testing.T) {
	access, own := accessOf(apiclient.Login{User: "ann", Password: "secret"})
	require.Equal(t, &guard.Access{User: "ann", Password: guard.DigestOf("secret"), Closed: true}, access)
	require.Equal(t, "secret", own.Password)

	access, own = accessOf(apiclient.Login{Token: "secret"})
	require.True(t, access.NoPassword)
	require.Equal(t, guard.DigestOf("secret"), access.Tokens[0].Digest)
	require.Equal(t, "secret", own.Token)

	access, own = accessOf(apiclient.Login{Source: "There are none"})
	require.True(t, access.Closed, "also if the cells need none")
	require.NotEmpty(t, own.Token)
	require.Equal(t, guard.DigestOf(own.Token), access.Tokens[0].Digest)
}
