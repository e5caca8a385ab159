package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var usualEnvironment = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}

// tried is what `plugins run` prints.
type tried struct {
	JobType, Outcome, Code, Message string
	Progress, Checkpoint            json.RawMessage
	Attempt                         int
	TookMs                          int
}

func TestRunTriesOneJobWithoutADatabase(t *testing.T) {
	handlers := built(t, "handlers")
	for name, c := range map[string]struct {
		args []string
		code int
		want tried
	}{
		"success": {
			[]string{"--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 1}`},
			exitOK,
			tried{JobType: "SLEEP_JOB", Outcome: "succeeded", Attempt: 1, Progress: []byte(`{"sleptSeconds":1,"ofSeconds":1}`)},
		},
		"failure": {
			[]string{"--type", "FAIL_JOB", "--payload", `{"message": "no paper"}`},
			3,
			tried{JobType: "FAIL_JOB", Outcome: "failed", Attempt: 1, Message: "no paper"},
		},
		"later attempt": {
			[]string{
				"--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 300}`, "--attempt", "7",
				"--checkpoint", `{"sleptSeconds": 299, "ofSeconds": 300}`,
			},
			exitOK,
			tried{JobType: "SLEEP_JOB", Outcome: "succeeded", Attempt: 7, Progress: []byte(`{"sleptSeconds":300,"ofSeconds":300}`)},
		},
		"timeout": {
			[]string{"--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 300}`, "--timeout", "300ms"},
			3,
			tried{JobType: "SLEEP_JOB", Outcome: "timeout", Attempt: 1, Progress: []byte(`{"sleptSeconds":0,"ofSeconds":300}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(t, usualEnvironment, append([]string{"plugins", "run", handlers}, c.args...)...)
			require.Equal(t, c.code, code, stderr)
			var got tried
			require.NoError(t, json.Unmarshal([]byte(stdout), &got), stdout)
			if c.want.Progress != nil {
				require.JSONEq(t, string(c.want.Progress), string(got.Progress))
				require.Contains(t, stderr, "progress {")
			}
			got.Progress, got.Checkpoint, got.TookMs, c.want.Progress = nil, nil, 0, nil
			if c.want.Message == "" {
				got.Message, got.Code = "", ""
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestRunRefusesImpossibleRuns(t *testing.T) {
	handlers := built(t, "handlers")
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"refuses the payload\n  #/payload/sleepSeconds: must be": {exitFailure, []string{handlers, "--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 0}`}},
		"--type is missing: the binary serves FAIL_JOB, ":        {exitUsage, []string{handlers}},
		"--type X: the binary serves FAIL_JOB, ":                 {exitUsage, []string{handlers, "--type", "X"}},
		"--payload: not JSON":                                    {exitUsage, []string{handlers, "--payload", "{"}},
		"--checkpoint: not JSON":                                 {exitUsage, []string{handlers, "--checkpoint", "{"}},
		"--payload: it is not UTF-8":                             {exitUsage, []string{handlers, "--payload", "\"\xff\""}},
		"--payload is empty; give it a value, or leave it out":   {exitUsage, []string{handlers, "--payload", ""}},
		"--payload: open /missing: no such file":                 {exitFailure, []string{handlers, "--payload", "@/missing"}},
		"--payload and --checkpoint cannot both":                 {exitUsage, []string{handlers, "--payload", "-", "--checkpoint", "-"}},
		"--attempt must be at least 1":                           {exitUsage, []string{handlers, "--attempt", "0"}},
		"--timeout must be above zero; leave it out":             {exitUsage, []string{handlers, "--timeout", "0"}},
		"--timeout must be above zero":                           {exitUsage, []string{handlers, "--timeout", "-1s"}},
		"--start-timeout: 0s is not above 0s and at most 10m0s":  {exitUsage, []string{handlers, "--start-timeout", "0s"}},
		"does not come up: it was not up within 300ms":           {exitFailure, []string{"/bin/cat", "--start-timeout", "300ms"}},
		"--env =x: write NAME=value":                             {exitUsage, []string{handlers, "--env", "=x"}},
		"the path of the plugin is missing; usage":               {exitUsage, []string{""}},
		"--env A: write NAME=value":                              {exitUsage, []string{handlers, "--env", "A"}},
		"no such file":                                           {exitFailure, []string{handlers + ".missing"}},
		"the path of the plugin is missing":                      {exitUsage, nil},
		"does not come up: it ended during its start":            {exitFailure, []string{"/bin/false"}},
	} {
		code, stdout, stderr := execute(t, usualEnvironment, append([]string{"plugins", "run"}, c.args...)...)
		require.Contains(t, stderr, want)
		require.Equal(t, c.code, code, want)
		require.Empty(t, stdout)
		require.True(t, strings.HasPrefix(stderr, "orchestrator: "), stderr)
	}
}

// notBinaries are paths of files that are no programs, and what is said of them.
func notBinaries(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	return map[string]string{
		filepath.Join(dir, "missing"): "no such file or directory\n",
		dir:                           dir + " is not a file\n",
		write("notes", "text", 0o644): "notes is not executable\n",
		write("text", "text", 0o755):  "it is no program for this machine, nor a script with #! on its first line\n",
		write("script", "#!/no/such/python\n", 0o755): "or what it needs, such as the interpreter that a script names on its first line\n",
	}
}

func TestAFileThatIsNoProgramIsAnErrorOfOneLine(t *testing.T) {
	for path, want := range notBinaries(t) {
		for _, command := range []string{"run", "check"} {
			code, stdout, stderr := execute(t, usualEnvironment, "plugins", command, path)
			require.Equal(t, exitFailure, code, stderr)
			require.Empty(t, stdout)
			require.Regexp(t, `^orchestrator: [^\n]*`+regexp.QuoteMeta(want)+"$", stderr, command)
		}
	}
}

func TestASignalStopsTheTrialCleanly(t *testing.T) {
	var stdout records
	stderr := whenItSays{text: "progress", do: func() { signalSelf(t, syscall.SIGINT) }}
	p := program{stdout: &stdout, stderr: &stderr, environ: usualEnvironment, assemble: assemble}
	code := p.run(t.Context(), []string{"plugins", "run", built(t, "handlers"), "--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 300}`})
	require.Equal(t, 130, code)
	require.Contains(t, stdout.String(), `"outcome": "canceled"`)
	require.Contains(t, stderr.String(), "asking the handler to stop; press Ctrl-C again to kill it")
}

func TestTheEndOfTheProgramStopsTheTrial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stderr := whenItSays{text: "progress", do: cancel}
	p := program{stdout: &records{}, stderr: &stderr, environ: usualEnvironment, assemble: assemble}
	code := p.run(ctx, []string{"plugins", "run", built(t, "handlers"), "--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 300}`})
	require.Equal(t, 3, code, stderr.String())
}

func TestCheckNamesBrokenRules(t *testing.T) {
	handlers := built(t, "handlers")
	only := []string{"plugins", "check", handlers, "--type", "SLEEP_JOB", "--only", "success,schema", "--payload"}
	code, stdout, stderr := execute(t, usualEnvironment, append(only, `{"sleepSeconds": 1}`)...)
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Regexp(t, `(?s)^ok       manifest .*ok       schema .*ok       success  .*succeeded.*\n3 passed, 0 failed, 0 skipped\n$`, stdout)

	code, stdout, _ = execute(t, usualEnvironment, append(only, `{"sleepSeconds": 0}`)...)
	require.Equal(t, 3, code)
	require.Contains(t, stdout, "FAILED   schema          job type SLEEP_JOB refuses the payload {\"sleepSeconds\": 0}: /sleepSeconds must be")
	require.Regexp(t, `\n         expected: \S.*\n         to fix:   \S`, stdout)

	code, stdout, _ = execute(t, usualEnvironment, append(only, `{"sleepSeconds": 0}`, "--json")...)
	require.Equal(t, 3, code)
	var report struct {
		Version  string
		JobTypes []string
		Checks   []struct{ Name, Status, Expected, Happened, Fix string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &report), stdout)
	require.Equal(t, "failed", report.Checks[1].Status)
	require.Contains(t, report.JobTypes, "SLEEP_JOB")
	require.NotEmpty(t, report.Checks[1].Fix)
}

func TestCheckRefusesFlagsThatMakeNoSense(t *testing.T) {
	for want, args := range map[string][]string{
		`there is no check "drane"; there are by-hand, `: {"x", "--only", "drane"},
		"--slow-type needs --slow-payload":               {"x", "--slow-type", "A"},
		"--fail-payload: not JSON":                       {"x", "--fail-payload", "{"},
		"--payload is empty":                             {"x", "--payload", ""},
		"--slow-payload: it is empty":                    {"x", "--slow-payload", " "},
		"--color is auto, always or never":               {"x", "--color", "pink"},
		"--payload and --fail-payload cannot both":       {"x", "--payload", "-", "--fail-payload", "-"},
		`the argument "y" is not expected`:               {"x", "y"},
	} {
		code, _, stderr := execute(t, usualEnvironment, append([]string{"plugins", "check"}, args...)...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, want)
	}
}

func TestCheckNamesWhatTheBinaryServes(t *testing.T) {
	handlers := built(t, "handlers")
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"--type NOPE: the binary serves FAIL_JOB, HTTP_REQUEST, SEND_EMAIL, SLEEP_JOB, WEBHOOK\n": {exitUsage, []string{"--type", "NOPE", "--payload", "{}"}},
		"--type is missing: the binary serves FAIL_JOB, ":                                         {exitUsage, []string{"--payload", "{}"}},
		"--slow-type NOPE: the binary serves FAIL_JOB, ":                                          {exitUsage, []string{"--slow-type", "NOPE", "--slow-payload", "{}"}},
		"--fail-type is missing: the binary serves FAIL_JOB, ":                                    {exitUsage, []string{"--fail-payload", "{}"}},
		`--payload: job type SLEEP_JOB refuses the payload {"sleepSeconds": 0}: /sleepSeconds `:   {exitFailure, []string{"--type", "SLEEP_JOB", "--payload", `{"sleepSeconds": 0}`}},
	} {
		code, stdout, stderr := execute(t, usualEnvironment,
			append([]string{"plugins", "check", handlers, "--json", "--only", "success"}, c.args...)...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, "orchestrator: "+want)
		require.Empty(t, stdout)
	}
}

func TestOutputOfAProcessCannotSteerTheTerminal(t *testing.T) {
	rude := filepath.Join(t.TempDir(), "rude")
	require.NoError(t, os.WriteFile(rude, []byte("#!/bin/sh\nprintf '\\033[31mred\\n' >&2\nexit 9\n"), 0o755))
	for _, command := range []string{"run", "check"} {
		code, stdout, stderr := execute(t, usualEnvironment, "plugins", command, rude)
		require.NotEqual(t, exitOK, code)
		require.Contains(t, stdout+stderr, `it printed: \x1b[31mred`)
		require.NotContains(t, stdout+stderr, "\x1b")
	}
}

func TestASignalEndsTheWaitForAProgramThatNeverEnds(t *testing.T) {
	sleeper := filepath.Join(t.TempDir(), "sleeper")
	require.NoError(t, os.WriteFile(sleeper, []byte("#!/bin/sh\necho $$ >"+sleeper+".pid\nexec sleep 1000\n"), 0o755))
	require.NoError(t, syscall.Mkfifo(sleeper+".pid", 0o600))
	started, err := os.OpenFile(sleeper+".pid", os.O_RDWR, 0)
	require.NoError(t, err)
	defer started.Close()
	for _, command := range []string{"run", "check"} {
		const bound = time.Minute // the program sleeps for longer
		begun, said := time.Now(), make(chan int, 1)
		require.NoError(t, started.SetReadDeadline(begun.Add(bound)))
		go func() {
			var pid int
			_, err := fmt.Fscanln(started, &pid)
			assert.NoError(t, err)
			said <- pid
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		}()
		code, _, stderr := execute(t, usualEnvironment, "plugins", command, sleeper)
		pid := <-said
		require.Equal(t, 130, code, stderr)
		require.Less(t, time.Since(begun), bound, command)
		require.Positive(t, pid)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "no process is left")
	}
}

func TestASignalEndsTheChecks(t *testing.T) {
	stdout := whenItSays{text: "handshake", do: func() { signalSelf(t, syscall.SIGINT) }}
	stderr := records{}
	p := program{stdout: &stdout, stderr: &stderr, environ: usualEnvironment, assemble: assemble}
	handlers := built(t, "handlers")
	begun := time.Now()
	require.Equal(t, 130, p.run(t.Context(), []string{"plugins", "check", handlers}))
	require.Contains(t, stdout.String(), "the checks were stopped")
	require.Less(t, time.Since(begun), longWait)
}
