// Package rigtest adapts package rig to tests: all processes are gone when the test ends,
// a failed test shows the end of the log, and errors end the test.
package rigtest

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// Patience bounds every wait for something that should happen soon. It is generous, so
// that no test fails because the machine is slow.
const Patience = 2 * time.Minute

// shown is how much of a log a failed test shows, in bytes.
const shown = 2 << 10

// New returns an orchestrator that will run in the directory, and whose plugins have Patience to
// start. At the end of the test it kills the orchestrator and checks that no descendant remains.
func New(t testing.TB, binary, dir string, settings ...string) *rig.Orchestrator {
	t.Helper()
	o, err := rig.New(t.Context(), binary, dir, Log(t), patient(settings)...)
	require.NoError(t, err)
	goneAfter(t, o)
	return o
}

// Apart is New for an orchestrator of three processes with a role each.
func Apart(t testing.TB, binary, dir string, settings ...string) *rig.Orchestrator {
	t.Helper()
	log := func(role job.Role) io.Writer { return logOf(t, "the process with the role "+string(role)) }
	o, err := rig.Apart(t.Context(), binary, dir, log, patient(settings)...)
	require.NoError(t, err)
	goneAfter(t, o)
	return o
}

// patient gives each plugin that has no other start timeout Patience to start.
func patient(settings []string) []string {
	var all []string
	for _, setting := range settings {
		key, _, _ := strings.Cut(setting, "=")
		if at, isPath := strings.CutSuffix(key, ".path"); isPath && strings.HasPrefix(at, "plugins.") {
			all = append(all, at+".start_timeout="+Patience.String())
		}
	}
	return append(all, settings...)
}

func goneAfter(t testing.TB, o *rig.Orchestrator) {
	t.Helper()
	t.Cleanup(func() {
		if o.Running() {
			_ = o.Kill() // The test has failed already, or does not need a clean end.
		}
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_, err := o.NoneLeft(ctx)
		require.NoError(t, err)
	})
}

// Log returns a file for a log, whose end is shown if the test fails.
func Log(t testing.TB) io.Writer {
	t.Helper()
	return logOf(t, "the orchestrator")
}

func logOf(t testing.TB, whose string) io.Writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orchestrator.log")
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = file.Close()
		if text, err := os.ReadFile(path); err == nil && t.Failed() {
			t.Logf("end of the log of %s:\n%s", whose, text[max(0, len(text)-shown):])
		}
	})
	return file
}

// Logged is what the orchestrator has logged so far, one process after another.
func Logged(t testing.TB, o *rig.Orchestrator) string {
	t.Helper()
	var all []byte
	for _, log := range o.Logs() {
		text, err := os.ReadFile(log.(*os.File).Name())
		require.NoError(t, err)
		all = append(all, text...)
	}
	return string(all)
}

// Beside starts a program that runs beside the test until its end, in a process group of its
// own. Then it gets the signal. When it has ended, or after Patience, what is left of its group
// is killed. What it prints is shown if the test fails.
func Beside(t testing.TB, program *exec.Cmd, end syscall.Signal) {
	t.Helper()
	log := Log(t)
	program.Stdout, program.Stderr = log, log
	if program.SysProcAttr == nil {
		program.SysProcAttr = &syscall.SysProcAttr{}
	}
	program.SysProcAttr.Setpgid = true
	require.NoError(t, program.Start())
	ended := make(chan struct{})
	go func() {
		_ = program.Wait() // a signal ends it
		close(ended)
	}()
	t.Cleanup(func() {
		_ = program.Process.Signal(end)
		select {
		case <-ended:
		case <-time.After(Patience):
		}
		_ = syscall.Kill(-program.Process.Pid, syscall.SIGKILL)
		<-ended
	})
}

// Start starts the orchestrator and waits until it is ready.
func Start(t testing.TB, o *rig.Orchestrator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	_, err := o.Start(ctx)
	require.NoError(t, err)
}

// Submit submits a job and returns its id.
func Submit(t testing.TB, o *rig.Orchestrator, s rig.Submission) string {
	t.Helper()
	id, err := o.Submit(t.Context(), s)
	require.NoError(t, err)
	return id
}

// Await waits until the job has the status.
func Await(t testing.TB, o *rig.Orchestrator, id, status string) rig.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	found, err := o.Await(ctx, id, status)
	require.NoError(t, err)
	return found
}

// AwaitHandlers waits until so many attempts run in handlers. A job that is RUNNING may only
// have been claimed.
func AwaitHandlers(t testing.TB, o *rig.Orchestrator, attempts int) {
	t.Helper()
	require.Eventually(t, func() bool {
		found, err := o.Plugins(t.Context())
		require.NoError(t, err)
		running := 0
		for _, p := range found {
			running += p.Running
		}
		return running == attempts
	}, Patience, 10*time.Millisecond, "%d attempts run", attempts)
}

// Seeded returns a source of random numbers and logs its seed. Set HOLDFAST_TEST_SEED to
// repeat a run.
func Seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	if text := os.Getenv("HOLDFAST_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "HOLDFAST_TEST_SEED")
	}
	t.Logf("HOLDFAST_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // repeatable
}
