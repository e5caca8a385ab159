// Package workflows tests jobs that come after one another: real orchestrators and a real
// plugin on a real PostgreSQL, which are killed at any point. With
// HOLDFAST_TEST_WORKFLOWS=full the workflow has 1,000 jobs.
package workflows

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	patience = 5 * rigtest.Patience
	glance   = 20 * time.Millisecond
	last     = "last" // the name that the job at the end has in the record
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/workflows", "../../cmd/orchestrator", "./steps"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// scene is a database with orchestrators.
type scene struct {
	orchestrators []*rig.Orchestrator
	record        string
}

func newScene(t *testing.T, orchestrators int) *scene {
	t.Helper()
	url := pgtest.URL(t)
	s := &scene{record: filepath.Join(t.TempDir(), "record")}
	for i := range orchestrators {
		o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(),
			"database.url="+url,
			fmt.Sprintf("worker.id=%d", i),
			"worker.lease=3s",
			"worker.kill_grace=300ms",
			"worker.crash_policy=release",
			// The jobs are not to blame for the kills.
			"jobs.default.max_crashes=100",
			"jobs.default.max_attempts=3",
			"log.format=json",
			"plugins.0.name=steps",
			"plugins.0.env.RECORD="+s.record,
			"plugins.0.path="+filepath.Join(bin, "steps"))
		s.orchestrators = append(s.orchestrators, o)
		rigtest.Start(t, o)
	}
	return s
}

// lines are the record so far.
func (s *scene) lines(t *testing.T) []string {
	t.Helper()
	record, err := os.ReadFile(s.record)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return strings.Split(strings.TrimSuffix(string(record), "\n"), "\n")
}

// kill kills a plugin, or an orchestrator, which starts again.
func (s *scene) kill(t *testing.T, random *rand.Rand, plugin bool) {
	t.Helper()
	o := s.orchestrators[random.IntN(len(s.orchestrators))]
	o.Look()
	if victims := o.Handlers("steps"); plugin && len(victims) > 0 {
		_ = victims[random.IntN(len(victims))].Signal(syscall.SIGKILL)
		return
	}
	require.NoError(t, o.Kill())
	require.Eventually(t, func() bool { // the kernel may have given its port away meanwhile
		_, err := o.Start(t.Context())
		return err == nil
	}, patience, glance)
}

// payload is that of a job that fails, and dies, at random.
func payload(name string, random *rand.Rand) json.RawMessage {
	return fmt.Appendf(nil, `{"name": %q, "micros": %d, "failPercent": 15, "diePercent": 4}`, name, random.IntN(40_000))
}

// newDAG returns a workflow in which a job comes after up to four of the thirty before it.
func newDAG(random *rand.Rand, jobs int) v1.WorkflowSubmission {
	submission := func(name string) v1.Submission {
		return v1.Submission{JobType: "STEP", Payload: payload(name, random)}
	}
	w := v1.WorkflowSubmission{OnComplete: new(submission(last))}
	for i := range jobs {
		name := strconv.Itoa(i)
		one := v1.WorkflowJob{Submission: submission(name), Name: &name}
		for range random.IntN(5) {
			if before := i - 1 - random.IntN(30); before >= 0 && !slices.Contains(one.After, strconv.Itoa(before)) {
				one.After = append(one.After, strconv.Itoa(before))
			}
		}
		w.Jobs = append(w.Jobs, one)
	}
	return w
}

// Everything is killed while jobs of a workflow fail and die at random, and an operator
// requeues the dead ones.
func TestEveryJobBeginsAfterThoseItNamesWhateverIsKilled(t *testing.T) {
	jobs, kills := 60, 6
	if os.Getenv("HOLDFAST_TEST_WORKFLOWS") == "full" {
		jobs, kills = 1000, 60
	}
	random := rigtest.Seeded(t)
	s := newScene(t, 2)
	dag := newDAG(random, jobs)
	var accepted v1.WorkflowAccepted
	require.NoError(t, s.orchestrators[0].Call(t.Context(), http.MethodPost, "/workflows", dag, http.StatusAccepted, &accepted))
	at := "/workflows/" + accepted.WorkflowID.String()
	var shown v1.WorkflowDetail
	requeued, killed := 0, 0
	finished := func() bool {
		o := s.orchestrators[0]
		require.NoError(t, o.Call(t.Context(), http.MethodGet, at, nil, http.StatusOK, &shown))
		if shown.State == job.WorkflowStuck {
			require.NoError(t, o.Call(t.Context(), http.MethodPost, at+"/requeue", nil, http.StatusOK, nil))
			requeued++
		}
		// The kills are spread over the life of the workflow.
		for done := jobs - shown.Remaining; killed < kills && done >= (killed+1)*jobs/(kills+1); killed++ {
			time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond) // a point that nothing else chooses
			s.kill(t, random, killed%3 != 2)
		}
		return shown.FinishedAt != nil
	}
	require.Eventually(t, finished, patience, glance)
	lines := s.lines(t)
	t.Logf("%d kills, %d requeues of dead jobs, %d attempts of %d jobs", killed, requeued, begins(lines), jobs)
	require.Equal(t, kills, killed)
	require.Equal(t, job.WorkflowSucceeded, shown.State)
	require.Zero(t, shown.Remaining)
	require.Zero(t, shown.Unsuccessful)
	for _, step := range shown.Steps {
		require.Equal(t, job.Succeeded, step.State, step.Name)
	}
	require.Empty(t, violations(dag, lines))
	for _, o := range s.orchestrators {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}
