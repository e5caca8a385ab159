package ui_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func someWorkers() map[string]any {
	id, _ := job.ParseID("019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa")
	began := noon.Add(-time.Minute)
	stopped := noon.Add(-time.Hour)
	return map[string]any{
		"GET /debug/workers": v1.WorkerList{Workers: []v1.Worker{
			{
				WorkerID: "one/1", Host: "jobs-1", PID: 4711, Roles: job.AllRoles(), Condition: job.WorkerAlive, StartedAt: noon.Add(-50 * time.Hour), LastHeartbeat: noon.Add(-2 * time.Second),
				Plugins: json.RawMessage(`[{"name":"builtin","version":"v1","jobTypes":["A","B"]},{"name":"<b>","jobTypes":["C"]}]`),
				Jobs:    map[job.State]int64{job.Running: 2, job.Succeeded: 1000, job.Dead: 3},
			},
			{WorkerID: "two", Host: "jobs-2", Roles: job.Roles{job.RoleWorker}, Condition: job.WorkerDraining, StartedAt: began, LastHeartbeat: noon, Plugins: json.RawMessage(`{}`)},
			{WorkerID: "three", Condition: job.WorkerStopped, StartedAt: noon.Add(-2 * time.Hour), LastHeartbeat: stopped, StoppedAt: &stopped, Plugins: json.RawMessage(`[]`)},
			{WorkerID: "four", Host: "jobs-2", Roles: job.Roles{job.RoleAPI, job.RoleMaintenance}, Condition: job.WorkerAlive, StartedAt: began, LastHeartbeat: noon, Plugins: json.RawMessage(`[]`)},
		}},
		"GET /debug/jobs": v1.FoundJobs{Jobs: []v1.FoundJob{{
			Job: v1.Job{JobID: id, JobType: "A", StartedAt: &began}, State: job.Running, Tenant: "<acme>", AttemptsCharged: 1, MaxAttempts: 4,
		}}, NextCursor: "more"},
		"POST /debug/workers/one%2F1/drain": v1.Worker{}, "POST /debug/workers/two/resume": v1.Worker{},
	}
}

func TestWorkersAreListed(t *testing.T) {
	requireGolden(t, "workers", newPages(someWorkers()).get("/ui/workers"))
	requireGolden(t, "workers-empty", newPages(map[string]any{"GET /debug/workers": v1.WorkerList{}}).get("/ui/workers"))
	requireNothingToDo(t, newPagesFor(observers, someWorkers()).get("/ui/workers", "Authorization: Bearer observer"))
}

func TestAWorkerIsShownWithItsJobs(t *testing.T) {
	requireGolden(t, "worker", newPages(someWorkers()).get("/ui/workers/one%2F1"))
	require.Equal(t, 404, newPages(someWorkers()).get("/ui/workers/none").Code)
}

func TestAWorkerIsDrainedAndResumed(t *testing.T) {
	p := newPages(someWorkers())
	w := p.post("/ui/workers/one%2F1/drain", "back", "/ui/workers")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/workers", w.Header().Get("Location"))
	require.Equal(t, 303, p.post("/ui/workers/two/resume").Code)
	require.Equal(t, []string{"POST /debug/workers/one%2F1/drain", "POST /debug/workers/two/resume"}, p.api.sent)
}
