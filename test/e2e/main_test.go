// Package e2e tests the real orchestrator with real plugin processes on a real
// PostgreSQL.
package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// patience bounds every wait for something that should happen soon.
const patience = rigtest.Patience

// glance is the pause between two checks.
const glance = 20 * time.Millisecond

// bin is the directory of the binaries under test. They are built with the race
// detector if the tests are.
var bin string

// apart is whether every orchestrator is three processes with a role each, instead of one with
// all roles. HOLDFAST_TEST_ROLES=apart makes it so. A test sees the same in both forms.
var apart = os.Getenv("HOLDFAST_TEST_ROLES") == "apart"

// variables are in the environment of every orchestrator. Parallel tests share one
// environment, so they cannot set their own.
var variables = map[string]string{"CANARY_HEADER": canary, "COLLECTOR_KEY": "s3cret", "GORACE": os.Getenv("GORACE") + " " + exitAtOnce}

// exitAtOnce is for the race detector, which sleeps for a second before a process exits.
const exitAtOnce = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	// Parallel tests mostly wait: for processes that start and end, for leases and for
	// timeouts. If more of them ran at once, they would not get enough processor time.
	_ = flag.Set("test.parallel", "3")
	for name, value := range variables {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if roles := os.Getenv("HOLDFAST_TEST_ROLES"); roles != "" && !apart {
		fmt.Fprintf(os.Stderr, "HOLDFAST_TEST_ROLES is %q, and must be apart, or empty for one process\n", roles)
		os.Exit(1)
	}
	var err error
	if bin, err = build(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

func build() (string, error) {
	args := []string{"../../cmd/orchestrator", "../../cmd/handlers", "./testhandlers"}
	if raceDetector {
		args = append([]string{"-race"}, args...)
	}
	return rigtest.Build("../../bin/e2e", args...)
}

// orchestrator describes an orchestrator on the database, with a short lease and fast
// retries. It is gone after the test.
func orchestrator(t testing.TB, url string, settings ...string) *rig.Orchestrator {
	t.Helper()
	return orchestratorIn(t, t.TempDir(), url, settings...)
}

// orchestratorIn describes an orchestrator that runs in the directory and reads the
// config.yaml there.
func orchestratorIn(t testing.TB, dir, url string, settings ...string) *rig.Orchestrator {
	t.Helper()
	settings = append([]string{
		"database.url=" + url,
		"worker.lease=4s",
		"worker.kill_grace=300ms",
		"worker.drain_timeout=5s",
		"worker.crash_policy=release",
		"jobs.default.retry.backoff=fixed",
		"jobs.default.retry.initial_delay=20ms",
		"log.format=json",
	}, settings...)
	program := filepath.Join(bin, "orchestrator")
	// Three processes take together as many connections as one does by default.
	if apart && !slices.ContainsFunc(settings, func(setting string) bool { return strings.HasPrefix(setting, "roles=") }) {
		return rigtest.Apart(t, program, dir, append([]string{"database.max_connections=6"}, settings...)...)
	}
	return rigtest.New(t, program, dir, settings...)
}

// oneProcess skips a test that says nothing about roles that are apart.
func oneProcess(t testing.TB, why string) {
	t.Helper()
	if apart {
		t.Skip("with HOLDFAST_TEST_ROLES=apart: " + why)
	}
}

// plugin returns the settings of a plugin.
func plugin(place int, name, binary string, env ...string) []string {
	at := fmt.Sprintf("plugins.%d.", place)
	settings := []string{
		at + "name=" + name, at + "path=" + filepath.Join(bin, binary), at + "concurrency=50", at + "env.GORACE=" + exitAtOnce,
	}
	for _, variable := range env {
		settings = append(settings, at+"env."+variable)
	}
	return settings
}

// ledger opens the database directly.
func ledger(t *testing.T, url string) *store.Store {
	t.Helper()
	return storetest.Open(t, url, 2)
}

func attempts(t *testing.T, s *store.Store, id string) []job.Attempt {
	t.Helper()
	parsed, err := job.ParseID(id)
	require.NoError(t, err)
	detail, err := s.Detail(t.Context(), parsed)
	require.NoError(t, err)
	return detail.Attempts
}

// prometheus returns the metrics of all the orchestrator's processes, as Prometheus gets them.
func prometheus(t *testing.T, o *rig.Orchestrator) string {
	t.Helper()
	var all strings.Builder
	for _, process := range o.Servers() {
		status, text, err := page(t, process, "/metrics")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, text)
		all.WriteString(text)
	}
	return all.String()
}

// page asks a process for a path as its operator, and returns what it answers.
func page(t *testing.T, o rig.Client, path string) (status int, text string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Address+path, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "text/plain")
	request.SetBasicAuth("admin", o.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}
