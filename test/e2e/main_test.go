// Package e2e tests the real orchestrator with real handler processes on a
// real PostgreSQL.
package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/storetest"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// patience bounds every wait for something that should happen soon. It is
// generous: a test fails for what happens, not for how slow the machine is.
const patience = 2 * time.Minute

// glance is the pause between two looks.
const glance = 20 * time.Millisecond

// bin is where the binaries under test are. They are built with the race
// detector when the tests are.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = build(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	storetest.Main(m)
}

func build() (string, error) {
	dir, err := filepath.Abs("../../bin/e2e")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", dir + "/"}
	if raceDetector {
		args = append(args, "-race")
	}
	args = append(args, "../../cmd/orchestrator", "../../cmd/handlers", "./testhandlers")
	if output, err := exec.Command("go", args...).CombinedOutput(); err != nil { //nolint:noctx // bounded by the test's own time
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return dir, nil
}

// orchestrator describes one on the database, with a short lease and fast
// retries, and makes sure that it is gone after the test.
func orchestrator(t testing.TB, url string, settings ...string) *rig.Orchestrator {
	t.Helper()
	return orchestratorIn(t, t.TempDir(), url, settings...)
}

// orchestratorIn describes one that runs in the directory, and so reads its
// config.yaml.
func orchestratorIn(t testing.TB, dir, url string, settings ...string) *rig.Orchestrator {
	t.Helper()
	settings = append([]string{
		"database.url=" + url,
		"worker.lease=2s",
		"worker.kill_grace=300ms",
		"worker.drain=5s",
		"worker.after_crash=give_back",
		"jobs.default.retry.backoff=fixed",
		"jobs.default.retry.base=20ms",
		"log.format=json",
	}, settings...)
	log := logFile(t)
	o, err := rig.New(t.Context(), filepath.Join(bin, "orchestrator"), dir, log, settings...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if o.Running() {
			_ = o.Kill() // the test has failed already or does not care
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := o.NoneLeft(ctx)
		require.NoError(t, err)
	})
	return o
}

// logFile collects an orchestrator's log, and shows its end when the test
// fails.
func logFile(t testing.TB) io.Writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orchestrator.log")
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = file.Close()
		if text, err := os.ReadFile(path); err == nil && t.Failed() {
			t.Logf("end of the log:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	return file
}

// plugin returns the settings of a handler plugin.
func plugin(place int, name, binary string, env ...string) []string {
	at := fmt.Sprintf("handlers.%d.", place)
	settings := []string{at + "name=" + name, at + "path=" + filepath.Join(bin, binary), at + "concurrency=50"}
	for _, variable := range env {
		settings = append(settings, at+"env."+variable)
	}
	return settings
}

func start(t testing.TB, o *rig.Orchestrator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := o.Start(ctx)
	require.NoError(t, err)
}

func submit(t *testing.T, o *rig.Orchestrator, s rig.Submission) string {
	t.Helper()
	id, err := o.Submit(t.Context(), s)
	require.NoError(t, err)
	return id
}

func await(t *testing.T, o *rig.Orchestrator, id, status string) rig.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found, err := o.Await(ctx, id, status)
	require.NoError(t, err)
	return found
}

// ledger opens the database past the API.
func ledger(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url, MaxConnections: 2})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func attempts(t *testing.T, s *store.Store, id string) []job.Attempt {
	t.Helper()
	parsed, err := job.ParseID(id)
	require.NoError(t, err)
	ended, err := s.Attempts(t.Context(), parsed)
	require.NoError(t, err)
	return ended
}

// prometheus is what the orchestrator answers Prometheus.
func prometheus(t *testing.T, o *rig.Orchestrator) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Address+"/metrics", nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "text/plain")
	request.SetBasicAuth("admin", o.Password)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	return string(text)
}
