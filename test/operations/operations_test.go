// Package operations tests actions on all jobs that match a filter: real orchestrators on a real
// PostgreSQL, which are killed meanwhile. With HOLDFAST_TEST_OPERATIONS=full there are 50,000
// jobs.
package operations

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
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
	patience = 4 * rigtest.Patience
	glance   = 20 * time.Millisecond
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/operations", "../../cmd/orchestrator", "../../cmd/handlers"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// many is how many jobs there are.
func many() int {
	if os.Getenv("HOLDFAST_TEST_OPERATIONS") == "full" {
		return 50_000
	}
	return 2000
}

// scene is a database with orchestrators, and a witness that counts the requeues of each job.
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
	_, err = db.Exec(t.Context(), `
		create table requeues (job_id uuid);
		create function witness() returns trigger language plpgsql as $$
		begin insert into requeues values (new.job_id); return null; end $$;
		create trigger witness after update of state on jobs for each row
			when (old.state = 'dead' and new.state = 'queued') execute function witness()`)
	require.NoError(t, err)
	for i := range orchestrators {
		o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(),
			"database.url="+url, fmt.Sprintf("worker.id=%d", i), "worker.lease=5s", "worker.kill_grace=300ms", "log.format=json",
			"plugins.0.name=builtin", "plugins.0.path="+filepath.Join(bin, "handlers"))
		s.orchestrators = append(s.orchestrators, o)
		rigtest.Start(t, o)
	}
	return s
}

// bury makes jobs that die, and that die again whenever they are requeued.
func (s *scene) bury(t *testing.T, n int) {
	t.Helper()
	for at := 0; at < n; at += 1000 {
		batch := make([]rig.Submission, min(1000, n-at))
		for i := range batch {
			batch[i] = rig.Submission{JobType: "FAIL_JOB", Payload: map[string]any{}, MaxAttempts: 1}
		}
		_, err := s.orchestrators[0].SubmitBatch(t.Context(), batch)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return s.count(t, "select count(*) from dead_letters") == n }, patience, glance)
}

func (s *scene) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, s.db.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

func (s *scene) start(t *testing.T, by int, body map[string]any) v1.OperationAnswer {
	t.Helper()
	var answer v1.OperationAnswer
	want := http.StatusAccepted
	if body["dryRun"] == true {
		want = http.StatusOK
	}
	require.NoError(t, s.orchestrators[by].Call(t.Context(), http.MethodPost, "/debug/operations", body, want, &answer))
	return answer
}

func (s *scene) see(t *testing.T, by int, id job.ID) (o v1.Operation) {
	t.Helper()
	require.NoError(t, s.orchestrators[by].Call(t.Context(), http.MethodGet, "/debug/operations/"+id.String(), nil, http.StatusOK, &o))
	return o
}

func (s *scene) finished(t *testing.T, by int, id job.ID) (o v1.Operation) {
	t.Helper()
	require.Eventually(t, func() bool { o = s.see(t, by, id); return o.FinishedAt != nil }, patience, glance)
	return o
}

func skipped(o v1.Operation) (n int64) {
	for _, jobs := range o.Skipped {
		n += jobs
	}
	return n
}

// requireOnce checks with the witness that so many jobs were requeued, each once.
func (s *scene) requireOnce(t *testing.T, jobs int) {
	t.Helper()
	require.Equal(t, jobs, s.count(t, "select count(*) from requeues"))
	require.Equal(t, jobs, s.count(t, "select count(distinct job_id) from requeues"))
}

func TestARequeueOfManyGoesOnElsewhereAfterAKill(t *testing.T) {
	s, n := newScene(t, 2), many()
	s.bury(t, n)
	request := map[string]any{"action": "requeue", "filter": map[string]any{"jobType": "FAIL_JOB"}, "rate": min(n/4, 5000), "dryRun": true}
	dry := s.start(t, 0, request)
	for part := dry; part.More; {
		on := maps.Clone(request)
		on["frozenAt"], on["cursor"] = part.FrozenAt, part.NextCursor
		part = s.start(t, 0, on)
		require.Empty(t, part.Samples)
		dry.Count += part.Count
	}
	require.Equal(t, n, dry.Count)
	require.Len(t, dry.Samples, 5)
	require.Len(t, dry.Warnings, 1, "the plugin that kills them still serves")

	delete(request, "dryRun")
	request["frozenAt"] = dry.FrozenAt
	id := s.start(t, 0, request).Operation.OperationID
	require.Eventually(t, func() bool { return s.see(t, 1, id).Done > int64(n/4) }, patience, glance)
	require.NoError(t, s.orchestrators[0].Kill())
	o := s.finished(t, 1, id)
	require.Equal(t, job.OperationFinished, o.State)
	require.EqualValues(t, dry.Count, o.Done+skipped(o), "%+v", o)
	require.Equal(t, o.Found, o.Done+skipped(o))
	s.requireOnce(t, int(o.Done))
	require.EqualValues(t, n, o.Done)
	require.NoError(t, s.orchestrators[1].ShutDown(t.Context()))
}

func TestAStopTakesEffectWithinOnePortion(t *testing.T) {
	s := newScene(t, 2)
	s.bury(t, 500)
	id := s.start(t, 0, map[string]any{"action": "requeue", "all": true, "rate": 20}).Operation.OperationID
	require.Eventually(t, func() bool { return s.see(t, 1, id).Done > 0 }, patience, glance)
	var stopped v1.Operation
	require.NoError(t, s.orchestrators[1].Call(t.Context(), http.MethodPost, "/debug/operations/"+id.String()+"/stop", nil, http.StatusOK, &stopped))
	require.Equal(t, job.OperationStopped, stopped.State)
	require.Less(t, stopped.Done, int64(500))
	s.requireOnce(t, int(stopped.Done))
	// Another operation is done meanwhile, by either.
	other := s.start(t, 0, map[string]any{"action": "cancel", "all": true}).Operation.OperationID
	s.finished(t, 1, other)
	s.requireOnce(t, int(stopped.Done))
	for _, o := range s.orchestrators {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}

func TestOperationsOnTheSameJobsActOnEachOnce(t *testing.T) {
	s := newScene(t, 2)
	const n = 600
	s.bury(t, n)
	frozen := s.start(t, 0, map[string]any{"action": "requeue", "all": true, "dryRun": true}).FrozenAt
	var ids []job.ID
	for i, filter := range []map[string]any{{"jobType": "FAIL_JOB"}, {"state": []string{"dead"}}, {"tenant": "default"}} {
		ids = append(ids, s.start(t, i%2, map[string]any{"action": "requeue", "filter": filter, "frozenAt": frozen, "rate": 2000}).Operation.OperationID)
	}
	var done int64
	for _, id := range ids {
		o := s.finished(t, 0, id)
		require.Equal(t, o.Found, o.Done+skipped(o))
		done += o.Done
	}
	require.EqualValues(t, n, done)
	s.requireOnce(t, n)
	for _, o := range s.orchestrators {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}
