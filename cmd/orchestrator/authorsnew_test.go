package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/loopback"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// aCommand matches a command in the output of `plugins new`.
var aCommand = regexp.MustCompile(`(?m)^  (\S.*)$`)

// programs builds the program and the built-in handlers, once for all tests:
// linking them takes seconds.
var programs = sync.OnceValues(func() (dir string, err error) {
	return rigtest.Build("../../bin/commands", ".", "../handlers")
})

// built is the path of one of the programs. Call it in the package's directory.
func built(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs()
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.FreeAddress(t.Context())
	require.NoError(t, err)
	return address
}

// The commands are pasted as they are printed: those for the first terminal one
// after another, the last of which goes on running, and the one for the second.
func TestPrintedCommandsLeadToAFinishedJob(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, lang := range []string{"go", "node", "python"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			if lang == "node" && os.Getenv("HOLDFAST_TEST_LANGUAGES") != "1" {
				t.Skip("npm downloads packages: HOLDFAST_TEST_LANGUAGES=1 allows it")
			}
			directory := t.TempDir()
			environ := append(os.Environ(), "HOLDFAST_DATABASE__URL="+pgtest.EmptyURL(t), "HOLDFAST_SERVER__ADDRESS="+freeAddress(t))
			first := exec.CommandContext(t.Context(), built(t, "orchestrator"), "plugins", "new", "count-words", "--lang", lang)
			if lang == "go" {
				first.Args = append(first.Args, "--replace", checkout)
			}
			first.Dir, first.Env = directory, environ
			printed, err := first.Output()
			require.NoError(t, err)
			var commands []string
			for _, line := range aCommand.FindAllStringSubmatch(string(printed), -1) {
				commands = append(commands, line[1])
			}
			if strings.Contains(string(printed), "pip install") && os.Getenv("HOLDFAST_TEST_LANGUAGES") != "1" {
				t.Skip("no python3 in the PATH has grpcio and protobuf: HOLDFAST_TEST_LANGUAGES=1 allows pip to download them")
			}
			require.Less(t, 1+len(commands), 10)
			last := len(commands) - 1
			serving := shell(t, directory, environ, "set -e\n"+strings.Join(commands[:last], "\n"))
			t.Cleanup(func() { stopShell(t, serving) })
			require.Eventually(t, func() bool { return strings.Contains(serving.said.String(), "listening") || serving.over() },
				15*time.Minute, 50*time.Millisecond, "%s", serving.said)
			require.False(t, serving.over(), serving.said.String())

			submitted := exec.CommandContext(t.Context(), "bash", "-c", commands[last])
			submitted.Dir, submitted.Env = t.TempDir(), environ
			said, err := submitted.CombinedOutput()
			require.NoError(t, err, "%s\n%s", said, serving.said)
			require.Contains(t, string(said), "COMPLETED")
			require.Contains(t, string(said), `{"words":2}`)
			require.Contains(t, serving.said.String(), "0 failed, 0 skipped")
		})
	}
}

// terminal is a shell that runs commands.
type terminal struct {
	*exec.Cmd
	said  *records
	ended chan struct{}
}

func shell(t *testing.T, directory string, environ []string, commands string) *terminal {
	t.Helper()
	s := &terminal{Cmd: exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", commands), said: &records{}, ended: make(chan struct{})}
	s.Dir, s.Env, s.Stdout, s.Stderr = directory, environ, s.said, s.said
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, s.Start())
	go func() {
		_ = s.Wait()
		close(s.ended)
	}()
	return s
}

func (s *terminal) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// stopShell is a Ctrl-C, and a kill for what does not mind it.
func stopShell(t *testing.T, s *terminal) {
	t.Helper()
	_ = syscall.Kill(-s.Process.Pid, syscall.SIGINT)
	select {
	case <-s.ended:
	case <-time.After(longWait):
		_ = syscall.Kill(-s.Process.Pid, syscall.SIGKILL)
		t.Errorf("it does not end: %s", s.said)
	}
}

func TestNewRefusesInvalidNamesAndNeverOverwrites(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("full", 0o755))
	require.NoError(t, os.WriteFile("full/note", nil, 0o600))
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"full is not empty; nothing is overwritten":        {exitFailure, []string{"full", "--replace", checkout}},
		`the name "Full" is not of the form`:               {exitUsage, []string{"Full"}},
		"there is no go.mod of":                            {exitUsage, []string{"a", "--replace", "full"}},
		`there is no scaffold for "cobol"; there`:          {exitUsage, []string{"a", "--lang", "cobol"}},
		"--dir is empty; give it a value, or leave it out": {exitUsage, []string{"a", "--dir", ""}},
		"--replace is for projects in Go":                  {exitUsage, []string{"a", "--lang", "python", "--replace", "full"}},
		"one name is needed":                               {exitUsage, nil},
		"name one with --replace":                          {exitFailure, []string{"a"}},
	} {
		code, stdout, stderr := execute(t, nil, append([]string{"plugins", "new"}, c.args...)...)
		require.Contains(t, stderr, want)
		require.Equal(t, c.code, code, want)
		require.Empty(t, stdout)
	}
	require.NoDirExists(t, "a")
}
