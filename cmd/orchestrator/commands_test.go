package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// execute runs one command and returns what it printed.
func execute(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := program{stdout: &out, stderr: &errs, environ: environ, assemble: assemble}
	code = p.run(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestMigrateUpAndStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	environ := []string{"HOLDFAST_DATABASE__URL=" + pgtest.EmptyURL(t)}

	code, stdout, stderr := execute(t, environ, "migrate", "status")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `NUMBER +NAME +APPLIED\n1 +0001_\S+ +pending\n`, stdout)

	code, stdout, stderr = execute(t, environ, "migrate", "up")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `^[1-9]\d* migrations applied\n$`, stdout)
	_, stdout, _ = execute(t, environ, "migrate", "up")
	require.Equal(t, "0 migrations applied\n", stdout)

	code, stdout, _ = execute(t, environ, "migrate", "status", "--json")
	require.Equal(t, exitOK, code)
	var versions []struct {
		Number    int
		AppliedAt *string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &versions))
	require.Equal(t, 1, versions[0].Number)
	require.NotNil(t, versions[0].AppliedAt)
}

// Nobody is at the other end of database.url: a migration goes past the pooler.
func TestAMigrationGoesPastThePoolerAndSetsTheRole(t *testing.T) {
	t.Chdir(t.TempDir())
	past := pgtest.EmptyURL(t)
	environ := []string{"HOLDFAST_DATABASE__URL=postgres://" + freeAddress(t) + "/x", "HOLDFAST_DATABASE__DIRECT_URL=" + past}
	code, stdout, stderr := execute(t, environ, "migrate", "up")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `^[1-9]\d* migrations applied\n[1-9]\d* settings given to the database user\n$`, stdout)
	_, stdout, _ = execute(t, environ, "migrate", "up")
	require.Equal(t, "0 migrations applied\n", stdout)
	conn, err := pgx.Connect(t.Context(), past)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var mode string
	require.NoError(t, conn.QueryRow(t.Context(), "show plan_cache_mode").Scan(&mode))
	require.Equal(t, "force_generic_plan", mode)

	environ[1] = "HOLDFAST_DATABASE__DIRECT_URL=postgres://user:s3cret@%zz/x"
	code, _, stderr = execute(t, environ, "migrate", "up")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "database.direct_url: is not the URL of a PostgreSQL database")
	require.NotContains(t, stderr, "s3cret")

	environ[1] = "HOLDFAST_DATABASE__REPLICA_URL=postgres://user:s3cret@%zz/x"
	code, _, stderr = execute(t, environ, "migrate", "up")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "database.replica_url: is not the URL of a PostgreSQL database")
	require.NotContains(t, stderr, "s3cret")
}

func TestVersion(t *testing.T) {
	code, stdout, _ := execute(t, nil, "version")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^orchestrator \S+ \(commit \S+, go1\.\d+`, stdout)
	_, stdout, _ = execute(t, nil, "version", "--json")
	require.True(t, json.Valid([]byte(stdout)))
}

// A variable of the shell that is not set must not widen what is asked for.
func TestEmptyFlagsAreErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		flag string
		args []string
	}{
		{"tag", []string{"list", "--tag", ""}},
		{"type", []string{"list", "--type="}},
		{"tenant", []string{"list", "--tenant", ""}},
		{"status", []string{"list", "--status", ""}},
		{"status", []string{"list", "--status", "FAILED,"}},
		{"created-from", []string{"list", "--created-from", ""}},
		{"cursor", []string{"list", "--cursor", ""}},
		{"tenant", []string{"dead-letter", "list", "--tenant", ""}},
		{"type", []string{"dead-letter", "retry", "--all", "--type", ""}},
		{"tag", []string{"submit", "SLEEP_JOB", "--tag", ""}},
		{"tag", []string{"submit", "SLEEP_JOB", "--tag", "a", "--tag", ""}},
		{"key", []string{"submit", "SLEEP_JOB", "--key", ""}},
		{"tenant", []string{"submit", "SLEEP_JOB", "--tenant", ""}},
		{"wait", []string{"submit", "SLEEP_JOB", "--wait="}},
		{"batch", []string{"submit", "SLEEP_JOB", "--batch", ""}},
		{"server", []string{"workers", "--server", ""}},
		{"config", []string{"serve", "--config", ""}},
	} {
		code, stdout, stderr := execute(t, []string{"HOLDFAST_SERVER=http://127.0.0.1:1"}, test.args...)
		require.Equal(t, exitUsage, code, test.args)
		require.Empty(t, stdout)
		require.Equal(t, "orchestrator: --"+test.flag+" is empty; give it a value, or leave it out\n", stderr, test.args)
	}
}

func TestTheProgramPrintsItsLicenses(t *testing.T) {
	code, stdout, _ := execute(t, nil, "licenses")
	require.Equal(t, exitOK, code)
	for _, name := range []string{"The Go standard library\n", "Swagger UI\n", "\ngithub.com/jackc/pgx/v5@", "\ngithub.com/hashicorp/go-plugin@"} {
		require.Contains(t, stdout, name)
	}
}

func TestUnknownCommandsAreUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"sevre":                 `unknown command "sevre" for "orchestrator"; did you mean serve?`,
		"migrate upp":           `unknown command "upp" for "orchestrator migrate"; did you mean up?`,
		"plugins lst":           `unknown command "lst" for "orchestrator plugins"; did you mean list?`,
		"plugins lst --direct":  `unknown command "lst" for "orchestrator plugins"; did you mean list?`,
		"plugins explode":       `unknown command "explode" for "orchestrator plugins"; there are check, disable, enable, `,
		"dead-letter retr":      `unknown command "retr" for "orchestrator dead-letter"; did you mean retry?`,
		"completion tcsh":       `unknown command "tcsh" for "orchestrator completion"; did you mean `,
		"completion bash extra": `the argument "extra" is not expected`,
		"help sevre":            `unknown command "sevre" for "orchestrator"; did you mean serve?`,
		"help plugins lst":      `unknown command "lst" for "orchestrator plugins"; did you mean list?`,
		"version extra":         `the argument "extra" is not expected; usage: orchestrator version`,
		"export --reopen a.b": `--reopen takes no file, and "a.b" is one: it lets the ledger in the database change again, and leaves files as they are; ` +
			"usage: orchestrator export --reopen, or orchestrator export FILE without --reopen to export",
		"serve extra":         `the argument "extra" is not expected; usage: orchestrator serve`,
		"bench nope":          `no such scenario as "nope"; there are:`,
		"bench --pgbouncer":   "--pgbouncer is for the scenario fleet, and that is not named",
		"bench e2e --rate 10": "--rate is for the scenario fleet, and that is not named",
	} {
		code, stdout, stderr := execute(t, nil, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "orchestrator: "+want)
	}
}

func TestAValueThatAFlagCannotHaveIsAnsweredInPlainWords(t *testing.T) {
	for args, want := range map[string]string{
		"list --limit x":                    `--limit: "x" is not a whole number`,
		"list --limit 99999999999999999999": `--limit: "99999999999999999999" is out of range`,
		"capacity --rate x":                 `--rate: "x" is not a number`,
		"list --json=x":                     `--json: "x" is not true or false`,
		"bench fleet --orchestrators 2,x":   `--orchestrators: "2,x" is not whole numbers with commas between them`,
		"plugins run x --start-timeout 5":   `--start-timeout: "5" is not a duration; write 500ms, 30s or 1h30m`,
		"serve --set worker.lease=tomorrow": `configuration: 'worker.lease' "tomorrow" is not a duration; write 500ms, 30s or 1h30m`,
	} {
		code, stdout, stderr := execute(t, nil, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, stdout)
		require.Equal(t, "orchestrator: "+want+"\n", stderr)
	}
}

func TestCapacitySaysWhatIsOutOfBoundsAndWhatToDo(t *testing.T) {
	for args, complaint := range map[string]string{
		"--keep 0s":      `--keep: "0s" is too short: retention keeps jobs for at least 1m`,
		"--payload 10GB": `--payload: "10GB" is too large: a payload has at most 32MiB`,
	} {
		code, stdout, stderr := execute(t, nil, append([]string{"capacity"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, complaint)
	}
	for keep, retention := range map[string]string{"30d": "720h", "90m": "1h30m", "1.5d": "36h", "100s": "1m40s", "10h": "10h"} {
		code, stdout, stderr := execute(t, nil, "capacity", "--keep", keep)
		require.Equal(t, exitOK, code, stderr)
		require.Regexp(t, " for "+keep+"; set retention to "+retention+"\n", stdout)
	}
	remarks := func(args ...string) (remarks []string) {
		code, stdout, stderr := execute(t, nil, append([]string{"capacity", "--json"}, args...)...)
		require.Equal(t, exitOK, code, stderr)
		var answer map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
		require.NoError(t, json.Unmarshal(answer["remarks"], &remarks))
		return remarks
	}
	require.NotNil(t, remarks())
	require.Empty(t, remarks())
	require.Contains(t, remarks("--orchestrators", "10")[0], "Set max_connections of PostgreSQL to 300")
}

func TestAnUnknownSubcommandDoesNotPrintHelp(t *testing.T) {
	p := program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, assemble: assemble}
	root := p.root()
	groups := []*cobra.Command{root}
	eachCommand(root, func(c *cobra.Command) {
		if c.HasAvailableSubCommands() {
			groups = append(groups, c)
		}
	})
	require.GreaterOrEqual(t, len(groups), 5)
	for _, group := range groups {
		path := strings.Fields(group.CommandPath())[1:]
		code, stdout, stderr := execute(t, nil, append(path, "nonsense")...)
		require.Equal(t, exitUsage, code, path)
		require.Empty(t, stdout, path)
		require.Contains(t, stderr, `unknown command "nonsense"`, path)

		for _, asked := range [][]string{path, append([]string{"help"}, path...), append(path, "--help")} {
			code, stdout, stderr = execute(t, nil, asked...)
			require.Equal(t, exitOK, code, stderr)
			require.Contains(t, stdout, group.CommandPath()+" [command]", asked)
		}
	}
}

func TestCompletionProposesTheScenariosOfTheBench(t *testing.T) {
	code, stdout, _ := execute(t, nil, "__complete", "bench", "")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "single\ta backlog of no-op jobs, worked off one at a time\n")
}
