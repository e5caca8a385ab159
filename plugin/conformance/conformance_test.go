package conformance_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin/conformance"
	"github.com/holdfast-jobs/holdfast/test/sdktest"
)

// binaries has what TestMain has built.
var binaries string

func TestMain(m *testing.M) {
	if mode != "" {
		serveBroken()
		return
	}
	if os.Getenv(envApart) != "" {
		answerApart()
		return
	}
	// Parallel tests wait most of the time, for processes that do not end.
	_ = flag.Set("test.parallel", "6")
	var err error
	if binaries, err = os.MkdirTemp("", "conformance"); err != nil {
		panic(err)
	}
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binaries+"/",
		"../../examples/handlers/echo", "../../cmd/handlers")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binaries)
		os.Exit(code)
	}))
}

// options are for the plugin in the file. What it leaves in its temporary directory
// goes with the tests: a socket of an earlier run must not be in the way of a process
// that happens to have the same pid.
func options(path string) conformance.Options {
	return conformance.Options{
		Path:         path,
		Env:          []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + binaries},
		StartTimeout: 30 * time.Second,
	}
}

// bare are options for the plugin that breaks a rule, without jobs.
func bare(mode string) conformance.Options {
	o := options(os.Args[0])
	// The race detector sleeps for a second before a process exits.
	o.Env = append(o.Env, envBroken+"="+mode, "GORACE=atexit_sleep_ms=0")
	return o
}

// broken are options for the plugin that breaks a rule.
func broken(mode string) conformance.Options {
	o := bare(mode)
	o.Work = conformance.Sample{Type: "WORK", Payload: []byte(`{}`)}
	o.Slow = conformance.Sample{Type: "SLOW", Payload: []byte(`{}`)}
	o.Grace, o.Patience = time.Second, 2*time.Second
	return o
}

// unbroken are options for the plugin that breaks no rule. The default times are long
// enough for a slow machine.
func unbroken() conformance.Options {
	o := broken("good")
	o.Grace, o.Patience = 0, 0
	return o
}

func run(t *testing.T, o conformance.Options) conformance.Report {
	t.Helper()
	report, err := conformance.Run(t.Context(), o)
	require.NoError(t, err)
	return report
}

// requireAll demands that every check has passed but those named, which were
// skipped.
func requireAll(t *testing.T, report conformance.Report, skipped ...string) {
	t.Helper()
	var without []string
	for _, c := range report.Checks {
		require.NotEqual(t, conformance.Failed, c.Status, "%s: %s", c.Name, c.Happened)
		if c.Status == conformance.Skipped {
			without = append(without, c.Name)
		}
	}
	require.Equal(t, skipped, without)
}

func TestAGoodPluginPassesEveryCheck(t *testing.T) {
	t.Parallel()
	o := unbroken()
	report := runApart(t, o)
	requireAll(t, report)
	require.Equal(t, "1.0", report.Version)
	require.Equal(t, []string{"WORK", "SLOW"}, report.Types)
	for _, c := range report.Checks {
		require.NotEmpty(t, c.Expected, c.Name)
		require.NotEmpty(t, c.Happened, c.Name)
		require.Empty(t, c.Fix, c.Name)
	}
}

// Its output does not end with the process.
func TestAProcessThatLeavesADaemonWhenStartedByHandDoesNotBlockTheChecks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "daemon.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nsetsid sleep 1000 &\necho not by hand >&2\nexit 1\n"), 0o700))
	begun := time.Now()
	report := runApart(t, options(path))
	require.Less(t, time.Since(begun), 5*time.Minute)
	require.Equal(t, conformance.Passed, report.Checks[0].Status, report.Checks[0].Happened)
}

func TestTheExamplesPass(t *testing.T) {
	t.Parallel()
	echo := options(filepath.Join(binaries, "echo"))
	echo.Work = conformance.Sample{Payload: []byte(`{"text": "hold fast"}`)}
	t.Run("echo", func(t *testing.T) {
		t.Parallel()
		requireAll(t, runApart(t, echo), // it serves one type
			"cancel", "deadline", "lease-lost", "lease-extended", "busy-health")
	})

	handlers := options(filepath.Join(binaries, "handlers"))
	handlers.Work = conformance.Sample{Type: "SLEEP_JOB", Payload: []byte(`{"sleepSeconds": 1}`)}
	handlers.Slow = conformance.Sample{Type: "SLEEP_JOB", Payload: []byte(`{"sleepSeconds": 300}`)}
	handlers.Fail = conformance.Sample{Type: "FAIL_JOB", Payload: []byte(`{"message": "no paper"}`)}
	t.Run("handlers", func(t *testing.T) {
		t.Parallel()
		requireAll(t, runApart(t, handlers))
	})
}

func TestTheExamplesInOtherLanguagesPass(t *testing.T) {
	t.Parallel()
	for lang, install := range map[string]func(t *testing.T) (string, []string, error){"PY": pythonExample, "NODE": nodeExample} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			path, args, err := install(t)
			if err != nil && os.Getenv("HOLDFAST_TEST_LANGUAGES") != "1" {
				t.Skip(err, "; make test-languages installs it")
			}
			require.NoError(t, err)
			requireAll(t, runApart(t, conformance.Options{
				Path: path, Args: args, Env: []string{"PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"},
				Work: conformance.Sample{Type: lang + "_ECHO", Payload: []byte(`{"text": "hold fast"}`)},
				Slow: conformance.Sample{Type: lang + "_COUNT", Payload: []byte(`{"to": 300}`)},
				Fail: conformance.Sample{Type: lang + "_FAIL", Payload: []byte(`{"how": "error"}`)},
			}))
		})
	}
}

func pythonExample(t *testing.T) (path string, args []string, err error) {
	t.Helper()
	interpreter, err := sdktest.Python(t.Context(), t.TempDir())
	return interpreter, []string{"../../examples/handlers/python/main.py"}, err
}

func nodeExample(t *testing.T) (path string, args []string, err error) {
	t.Helper()
	const example = "../../examples/handlers/node/"
	dir := t.TempDir()
	interpreter, err := sdktest.Node(t.Context(), dir, example+"node_modules")
	if err != nil {
		return "", nil, err
	}
	program, err := os.ReadFile(example + "main.js")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.js"), program, 0o600))
	return interpreter, []string{filepath.Join(dir, "main.js")}, nil
}

// Each broken plugin fails the check of the rule that it breaks, by name, with
// what it did.
func TestABrokenPluginFailsTheCheckOfItsRule(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"serves-anybody":       "by-hand: it printed a handshake without the cookie of an orchestrator",
		"wrong-cookie":         "handshake: it printed no handshake line, and ended with exit status 1; it printed: I am a handler plugin.",
		"no-handshake":         "handshake: it printed no handshake line within 1s",
		"dies-at-start":        "handshake: it printed no handshake line, and ended with exit status 2; it printed: ",
		"wrong-version":        `handshake: the handshake offers version "2" of the protocol, not 1`,
		"tcp":                  "handshake: it listens on tcp, not on a unix socket",
		"no-types":             "manifest: it declares no job type",
		"twice-declared":       `manifest: job type "WORK" is declared twice`,
		"bad-terms":            `manifest: job type "WORK": terms: "customer.id", the place of the concurrency key, must be a JSON Pointer`,
		"bad-schema":           "schema: job type WORK: at /type: ",
		"other-schema":         "schema: job type WORK refuses the payload {}: it must be a string",
		"any-schema":           "schema: the schema of job type WORK accepts anything",
		"unhealthy":            "health: it says NOT_SERVING",
		"fails":                "success: failed: no luck today",
		"bad-follow-up":        "success: follow-up 1 is not a JSON object with a jobType: ",
		"many-follow-ups":      "success: it submits 1001 jobs of together 19019 bytes, more than max_follow_ups or max_follow_up_bytes",
		"dies-of-failure":      "failure: the process ended with exit status 7",
		"dies-of-unknown-type": "unknown-type: the process ended with exit status 2; it printed: ",
		"forgets-duplicates":   "duplicate: start 2 of 2: no outcome came within",
		"small-messages":       "large-payload: ",
		"ignores-cancel":       "cancel: REASON_CANCELED: it has not stopped after 1s",
		"ignores-deadline":     "deadline: it still runs 1s after its timeout",
		"ignores-lease":        "lease-lost: it still runs 300ms after the end of a lease of 3s",
		"ignores-extensions":   "lease-extended: after ",
		"busy-health":          "busy-health: with 3 jobs under way: ",
		"ends-at-sigterm":      "signals: after interrupt: the process ended with signal: interrupt",
		"drops-at-drain":       "drain: it ended its job early: canceled",
		"stream-after-drain":   "drain: in the middle of a job: the stream has not ended 1s after the last outcome",
		"stays-after-drain":    "drain: in the middle of a job: the process still runs 1s after",
		"drains-badly":         "drain: in the middle of a job: it ended with exit status 4",
		"ignores-stdin":        "stdin: in the middle of a job it still runs 2s later",
		"leaves-child":         "sigkill: in the middle of a job: process ",
		"floods":               "noise: ",
		"reports-twice":        "outcomes: it sent a second outcome for handle 1",
		"unknown-handle":       "outcomes: it sent progress for handle 4711, which was never started",
		"bad-result":           `outcomes: it sent a result that is not JSON: "{"`,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(want, ":")
			o := broken(mode)
			o.Only = []string{name}
			if mode == "no-handshake" {
				o.StartTimeout = time.Second
			}
			report := runApart(t, o)
			c := report.Checks[indexOf(report, name)]
			require.Equal(t, conformance.Failed, c.Status, "%+v", c)
			require.Contains(t, c.Name+": "+c.Happened, want)
			require.NotEmpty(t, c.Fix)
		})
	}
}

func indexOf(report conformance.Report, name string) int {
	for i, c := range report.Checks {
		if c.Name == name {
			return i
		}
	}
	return -1
}

func TestChecksThatNeedJobsAreSkippedWithoutThem(t *testing.T) {
	report := run(t, bare("good"))
	requireAll(t, report, "success", "failure", "duplicate", "cancel", "deadline", "lease-lost", "lease-extended", "busy-health")
	require.Contains(t, report.Checks[indexOf(report, "success")].Happened, "--payload, and --type")
	require.Contains(t, report.Checks[indexOf(report, "cancel")].Happened, "--slow-payload, and --slow-type")
}

func TestWhatCannotBeStartedIsNotChecked(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o755))
	for path, want := range map[string]string{"/no/such/binary": "no such file", text: text + " cannot be started: "} {
		_, err := conformance.Run(t.Context(), conformance.Options{Path: path, End: func(c conformance.Check) { t.Error(c.Name) }})
		require.ErrorContains(t, err, want)
	}
}

func TestABinaryThatGoesWhileItIsCheckedLeavesTheReport(t *testing.T) {
	o := bare("good")
	program, err := os.ReadFile(o.Path)
	require.NoError(t, err)
	o.Path = filepath.Join(t.TempDir(), "handler")
	require.NoError(t, os.WriteFile(o.Path, program, 0o755))
	o.Only = []string{"handshake", "success"}
	o.End = func(conformance.Check) { _ = os.Remove(o.Path) }
	report := run(t, o)
	require.Equal(t, conformance.Passed, report.Checks[0].Status, report.Checks[0].Happened)
	require.Equal(t, conformance.Failed, report.Checks[1].Status)
	require.Contains(t, report.Checks[1].Happened, "no such file")
}

func TestAProgramThatIsNoHandlerFailsAndTheRestIsSkipped(t *testing.T) {
	report := run(t, conformance.Options{Path: "/bin/true"})
	require.Equal(t, conformance.Failed, report.Checks[0].Status)
	require.Equal(t, "it ended with exit code 0", report.Checks[0].Happened)
	require.Equal(t, conformance.Skipped, report.Checks[len(report.Checks)-3].Status)
}

func TestAPayloadThatTheSchemaRefusesIsNotRun(t *testing.T) {
	o := broken("other-schema")
	o.Only = []string{"schema", "success"}
	report := run(t, o)
	const why = "job type WORK refuses the payload {}: it must be a string"
	require.Equal(t, conformance.Failed, report.Checks[indexOf(report, "schema")].Status)
	success := report.Checks[indexOf(report, "success")]
	require.Equal(t, conformance.Skipped, success.Status)
	require.Equal(t, why, success.Happened)

	o.Only = []string{"success"}
	_, err := conformance.Run(t.Context(), o)
	require.EqualError(t, err, "--payload: "+why)
}

func TestWhoStopsTheChecksHasTheReportSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := unbroken()
	o.Begin = func(name string) {
		if name == "cancel" {
			cancel()
		}
	}
	heard := 0
	o.End = func(conformance.Check) { heard++ }
	report, err := conformance.Run(ctx, o)
	require.NoError(t, err)
	require.Len(t, report.Checks, heard)
	require.Equal(t, conformance.Passed, report.Checks[indexOf(report, "success")].Status)
	require.Equal(t, "the checks were stopped", report.Checks[indexOf(report, "cancel")].Happened)
	require.Equal(t, 10, report.Count(conformance.Passed))
}

func TestOneCheckCanBeMadeAlone(t *testing.T) {
	o := unbroken()
	o.Only = []string{"drain"}
	report := run(t, o)
	require.Len(t, report.Checks, 2, "the manifest and the one that was asked for")
	o.Only = []string{"drane"}
	_, err := conformance.Run(t.Context(), o)
	require.ErrorContains(t, err, `there is no check "drane"; there are by-hand, handshake, `)
	require.Len(t, conformance.Names(), 22)
}
