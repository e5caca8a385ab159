// Package rigtest has the rig for tests: what it runs is gone when the test has
// ended, the end of its log is shown when the test has failed, and its errors end
// the test.
package rigtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// Patience bounds every wait for something that should happen soon. It is
// generous: a test fails for what happens, not for how slow the machine is.
const Patience = 2 * time.Minute

// shown is how much of a log a failed test shows, in bytes.
const shown = 8 << 10

// Build builds programs into the directory, which it makes and returns as an
// absolute path. The arguments are those of go build: flags, then packages.
func Build(dir string, args ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	args = append([]string{"build", "-o", dir + "/"}, args...)
	if output, err := exec.Command("go", args...).CombinedOutput(); err != nil { //nolint:noctx // bounded by the test's own time
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return dir, nil
}

// New describes an orchestrator that runs in the directory, and makes sure that it
// is gone after the test with all that it has launched.
func New(t testing.TB, binary, dir string, settings ...string) *rig.Orchestrator {
	t.Helper()
	o, err := rig.New(t.Context(), binary, dir, Log(t), settings...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if o.Running() {
			_ = o.Kill() // the test has failed already or does not care
		}
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_, err := o.NoneLeft(ctx)
		require.NoError(t, err)
	})
	return o
}

// Log collects a log, and shows its end when the test fails.
func Log(t testing.TB) io.Writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orchestrator.log")
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = file.Close()
		if text, err := os.ReadFile(path); err == nil && t.Failed() {
			t.Logf("end of the log:\n%s", text[max(0, len(text)-shown):])
		}
	})
	return file
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
