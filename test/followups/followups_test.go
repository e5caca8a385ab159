// Package followups tests jobs that handlers submit: real orchestrators and a real plugin on
// a real PostgreSQL, which are killed at any point. With HOLDFAST_TEST_FOLLOWUPS=full there
// are 200 kills, which hit thousands of attempts.
package followups

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	patience = rigtest.Patience
	glance   = 20 * time.Millisecond
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/followups", "../../cmd/orchestrator", "./family"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// scene is a database with orchestrators.
type scene struct {
	orchestrators []*rig.Orchestrator
	db            *pgxpool.Pool
}

func newScene(t *testing.T, orchestrators int) *scene {
	t.Helper()
	url := pgtest.URL(t)
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	s := &scene{db: db}
	for i := range orchestrators {
		o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(),
			"database.url="+url,
			fmt.Sprintf("worker.id=%d", i),
			"worker.lease=5s",
			"worker.kill_grace=300ms",
			"worker.crash_policy=release",
			// The jobs are not to blame for the kills.
			"jobs.default.max_crashes=100",
			"jobs.default.max_attempts=1000",
			"log.format=json",
			"plugins.0.name=family",
			"plugins.0.path="+filepath.Join(bin, "family"))
		s.orchestrators = append(s.orchestrators, o)
		rigtest.Start(t, o)
	}
	return s
}

func (s *scene) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, s.db.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// submit submits a PARENT and returns its id.
func (s *scene) submit(t *testing.T, payload map[string]any, attempts int) string {
	t.Helper()
	return rigtest.Submit(t, s.orchestrators[0], rig.Submission{JobType: "PARENT", Payload: payload, MaxAttempts: attempts})
}

func (s *scene) children(t *testing.T, id string) int {
	t.Helper()
	return s.count(t, "select count(*) from jobs where parent_id = $1::text::uuid", id)
}

func (s *scene) inspect(t *testing.T, id string) (shown v1.JobDetail) {
	t.Helper()
	require.NoError(t, s.orchestrators[0].Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &shown))
	return shown
}

func TestOnlyTheAttemptThatSucceedsHasChildren(t *testing.T) {
	s := newScene(t, 1)
	id := s.submit(t, map[string]any{"failFirst": 3}, 4)
	rigtest.Await(t, s.orchestrators[0], id, "COMPLETED")
	require.Equal(t, 3, s.children(t, id))

	var tree v1.JobTree
	require.NoError(t, s.orchestrators[0].Call(t.Context(), http.MethodGet, "/jobs/"+id+"/tree", nil, http.StatusOK, &tree))
	require.Len(t, tree.Jobs, 4)
	require.Equal(t, id, tree.Jobs[3].ParentID.String())
	child := tree.Jobs[3].JobID.String()
	rigtest.Await(t, s.orchestrators[0], child, "COMPLETED")
	require.Equal(t, id, s.inspect(t, child).ParentID.String())
	require.Equal(t, []string{"child"}, s.inspect(t, child).Tags)
	require.NoError(t, s.orchestrators[0].ShutDown(t.Context()))
}

func TestARequeuedJobHasOneSetOfChildren(t *testing.T) {
	s := newScene(t, 1)
	o := s.orchestrators[0]
	id := s.submit(t, map[string]any{"failFirst": 1, "permanent": true}, 4)
	rigtest.Await(t, o, id, "FAILED")
	require.Zero(t, s.children(t, id))
	_, err := s.db.Exec(t.Context(), "update jobs set payload = '{}' where job_id = $1::text::uuid", id)
	require.NoError(t, err)
	require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/requeue", nil, http.StatusOK, nil))
	rigtest.Await(t, o, id, "COMPLETED")
	require.Equal(t, 3, s.children(t, id))
	require.NoError(t, o.ShutDown(t.Context()))
}

func TestASuccessWithARefusedFollowUpFails(t *testing.T) {
	s := newScene(t, 1)
	for name, c := range map[string]struct {
		payload map[string]any
		outcome job.OutcomeKind
		message string
	}{
		"payload": {map[string]any{"child": map[string]any{"number": 0}}, job.PermanentFailure, "#/followUps/2/payload/number must be at least 1"},
		"type":    {map[string]any{"type": "UNKNOWN"}, job.Failure, "#/followUps/2/jobType no handler has declared this job type"},
	} {
		t.Run(name, func(t *testing.T) {
			id := s.submit(t, c.payload, 2)
			rigtest.Await(t, s.orchestrators[0], id, "FAILED")
			shown := s.inspect(t, id)
			last := shown.Attempts[len(shown.Attempts)-1]
			require.Equal(t, c.outcome, last.Outcome)
			require.Equal(t, job.CodeFollowUpsRefused, last.Code)
			require.Equal(t, c.message, last.Error)
			if c.outcome == job.Failure {
				require.Len(t, shown.Attempts, 2, "it is retried")
			} else {
				require.Len(t, shown.Attempts, 1)
			}
			require.Zero(t, s.children(t, id))
		})
	}
	require.NoError(t, s.orchestrators[0].ShutDown(t.Context()))
}

// Plugins and orchestrators are killed while handlers that have submitted three children are
// about to end: each success has three, and nothing else has any.
func TestEachSuccessHasOneSetOfChildrenWhateverIsKilled(t *testing.T) {
	kills, hits := 12, 12
	if os.Getenv("HOLDFAST_TEST_FOLLOWUPS") == "full" {
		kills, hits = 200, 1000
	}
	random := rigtest.Seeded(t)
	s := newScene(t, 2)
	submitted := 0
	// more keeps enough jobs waiting, most of which spend their time near their end.
	more := func(o *rig.Orchestrator) {
		if s.count(t, `select count(*) from ready where job_type = 'PARENT'`) > 300 {
			return
		}
		batch := make([]rig.Submission, 500)
		for i := range batch {
			payload := map[string]any{"micros": random.IntN(20_000)}
			if i%10 == 0 {
				payload["failFirst"] = 1
			}
			batch[i] = rig.Submission{JobType: "PARENT", Payload: payload}
		}
		_, err := o.SubmitBatch(t.Context(), batch)
		require.NoError(t, err)
		submitted += len(batch)
	}
	const lost = `select count(*) from unsuccessful_attempts where outcome::text = any($1)`
	crashed := func() int { return s.count(t, lost, []string{"crashed", "suspected"}) }
	interrupted := func() int { return s.count(t, lost, []string{"interrupted", "lease_expired"}) }
	// On a slow machine a kill may hit little.
	for kill := 0; kill < kills || crashed() < hits || interrupted() < hits; kill++ {
		o := s.orchestrators[kill%2]
		before := s.count(t, `select count(*) from jobs where state = 'succeeded'`)
		more(o)
		require.Eventually(t, func() bool {
			return s.count(t, `select count(*) from jobs where state = 'succeeded'`) >= before+20
		}, patience, time.Millisecond)
		time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond) // a point that nothing else chooses
		o.Look()
		victims := o.Handlers("family")
		// Plugins that die too often are not launched again until the orchestrator is.
		if kill/2%3 != 2 && len(victims) > 0 {
			_ = victims[random.IntN(len(victims))].Signal(syscall.SIGKILL)
			continue
		}
		require.NoError(t, o.Kill())
		require.Eventually(t, func() bool { // the kernel may have given its port away meanwhile
			_, err := o.Start(t.Context())
			return err == nil
		}, patience, glance)
	}
	require.Eventually(t, func() bool {
		return s.count(t, `select count(*) from jobs where finished_at is null`) == 0
	}, patience, glance)
	t.Logf("kills hit %d attempts of %d jobs", crashed()+interrupted(), submitted)
	require.Equal(t, submitted, s.count(t, `select count(*) from jobs where job_type = 'PARENT' and state = 'succeeded'`))
	require.Zero(t, s.count(t, `select count(*) from jobs p where job_type = 'PARENT'
		and (select count(*) from jobs c where c.parent_id = p.job_id) <> 3`), "successes without three children")
	require.Equal(t, 3*submitted, s.count(t, `select count(*) from jobs where job_type = 'CHILD' and state = 'succeeded'`))
	require.Equal(t, 4*submitted, s.count(t, `select count(*) from jobs`))
	for _, o := range s.orchestrators {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}
