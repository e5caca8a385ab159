package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// The same jobs have the same ends, whether one process has all roles or three have one each.
// Those find work by hints alone: they would poll only after the test.
func TestThreeProcessesWithARoleEachDoWhatOneDoes(t *testing.T) {
	oneProcess(t, "it compares both forms itself")
	handlers := append(plugin(0, "storm", "testhandlers"), plugin(1, "builtin", "handlers")...)

	url := pgtest.URL(t)
	all := orchestrator(t, url, handlers...)
	rigtest.Start(t, all)
	want := lifeOfJobs(t, all)
	require.Equal(t, "COMPLETED", want["a job"], want)
	require.NoError(t, all.ShutDown(t.Context()))

	url = pgtest.URL(t)
	three := make(map[job.Role]*rig.Orchestrator)
	for _, role := range []job.Role{job.RoleMaintenance, job.RoleWorker, job.RoleAPI} { // which has no plugin, and no way to start one
		settings := []string{"roles=" + string(role), "worker.id=" + string(role), "worker.poll_interval=10m"}
		if role == job.RoleWorker {
			settings = append(settings, handlers...)
		}
		three[role] = orchestrator(t, url, settings...)
		rigtest.Start(t, three[role])
	}
	require.Empty(t, rig.Children(three[job.RoleAPI].PID()))
	require.Empty(t, rig.Children(three[job.RoleMaintenance].PID()))
	require.Equal(t, want, lifeOfJobs(t, three[job.RoleAPI]))

	t.Run("each says what it does", func(t *testing.T) { rolesAreShown(t, three) })
	t.Run("those without the role api serve nothing else", func(t *testing.T) { probesAreServed(t, three) })
	for _, o := range three {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}

// lifeOfJobs submits jobs of many kinds by way of a process, and returns how they end.
func lifeOfJobs(t *testing.T, o *rig.Orchestrator) map[string]string {
	t.Helper()
	found := make(map[string]string)
	refused := func(name string, s rig.Submission) {
		var answer v1.Problem
		require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs", s, http.StatusUnprocessableEntity, &answer), name)
		found[name] = fmt.Sprint(answer.Detail, answer.Errors)
	}
	refused("an unknown type", rig.Submission{JobType: "NOBODYS"})
	refused("a payload that does not fit", rig.Submission{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 301}})

	ids := make(map[string]string)
	work := func(payload map[string]any, change func(*rig.Submission)) func(string) {
		return func(name string) {
			s := rig.Submission{JobType: "WORK", Payload: payload, MaxAttempts: 3}
			change(&s)
			ids[name] = rigtest.Submit(t, o, s)
		}
	}
	same := func(*rig.Submission) {}
	for name, submit := range map[string]func(string){
		"a job":                         work(map[string]any{"millis": 1}, same),
		"a job that fails twice":        work(map[string]any{"failFirst": 2}, same),
		"a job that fails for good":     work(map[string]any{"error": "doomed"}, same),
		"a job that is put off":         work(map[string]any{"snoozeMillis": 200}, same),
		"a job that expires":            work(map[string]any{}, func(s *rig.Submission) { s.Hold, s.TTL = true, "300ms" }),
		"a job with a key":              work(map[string]any{"millis": 50}, func(s *rig.Submission) { s.ConcurrencyKey = "k" }),
		"a job behind it":               work(map[string]any{"millis": 1}, func(s *rig.Submission) { s.ConcurrencyKey = "k" }),
		"a job that takes too long":     work(map[string]any{"millis": 60_000}, func(s *rig.Submission) { s.Timeout, s.MaxAttempts = "100ms", 1 }),
		"a job that an operation stops": work(map[string]any{}, func(s *rig.Submission) { s.Hold, s.Tenant = true, "stopped" }),
		"a job that is canceled":        work(map[string]any{"millis": 60_000}, func(s *rig.Submission) { s.Tenant = "canceled" }),
	} {
		submit(name)
	}
	_, err := o.AwaitThat(patient(t), ids["a job that is canceled"], func(j rig.Job) bool { return j.Status == "RUNNING" })
	require.NoError(t, err)
	require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs/"+ids["a job that is canceled"]+"/cancel", nil, http.StatusOK, nil))
	require.NoError(t, o.Call(t.Context(), http.MethodPost, "/debug/operations",
		map[string]any{"action": "cancel", "filter": map[string]any{"tenant": "stopped"}}, http.StatusAccepted, nil))

	for name, id := range ids {
		ended, err := o.AwaitThat(patient(t), id, func(j rig.Job) bool { return !j.FinishedAt.IsZero() })
		require.NoError(t, err, name)
		found[name] = ended.Status
	}

	eventually := func(name, path, wanted string) {
		require.Eventually(t, func() bool {
			var answer json.RawMessage
			err := o.Call(t.Context(), http.MethodGet, path, nil, http.StatusOK, &answer)
			return err == nil && strings.Contains(string(answer), wanted)
		}, patience, glance, "%s: %s", path, wanted)
		found[name] = wanted
	}
	var workflow struct{ WorkflowID string }
	require.NoError(t, o.Call(t.Context(), http.MethodPost, "/workflows", map[string]any{"jobs": []any{
		map[string]any{"name": "first", "jobType": "WORK", "payload": map[string]any{"millis": 1}},
		map[string]any{"name": "second", "jobType": "WORK", "payload": map[string]any{"millis": 1}, "after": []string{"first"}},
	}}, http.StatusAccepted, &workflow))
	eventually("a workflow", "/workflows/"+workflow.WorkflowID, `"succeeded"`)
	eventually("a dead letter", "/dead-letter", ids["a job that fails for good"])
	delete(found, "a dead letter") // whose id is always another
	eventually("the plugins", "/debug/plugins/everywhere", `"storm"`)

	// Last: a process that makes the jobs of schedules also finds then what it was not told of.
	require.NoError(t, o.Call(t.Context(), http.MethodPut, "/schedules/tick", map[string]any{
		"every": "1s", "job": map[string]any{"jobType": "WORK", "payload": map[string]any{"millis": 1}, "tags": []string{"ticked"}},
	}, http.StatusOK, nil))
	eventually("a job of a schedule", "/jobs?tag=ticked&status=COMPLETED", `"jobId"`)

	waited := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", Payload: map[string]any{"millis": 300}})
	var answer rig.Job
	began := time.Now()
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/jobs/"+waited+"?wait=25s", nil, http.StatusOK, &answer))
	require.Less(t, time.Since(began), 25*time.Second, "it was hinted that the job has ended")
	found["a job that a client waits for"] = answer.Status
	return found
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func rolesAreShown(t *testing.T, three map[job.Role]*rig.Orchestrator) {
	api := three[job.RoleAPI]
	var found v1.WorkerList
	require.NoError(t, api.Call(t.Context(), http.MethodGet, "/debug/workers", nil, http.StatusOK, &found))
	require.Len(t, found.Workers, len(three))
	for _, w := range found.Workers {
		role, _, _ := strings.Cut(w.WorkerID, "/")
		require.Equal(t, job.Roles{job.Role(role)}, w.Roles)
		require.Equal(t, job.WorkerAlive, w.Condition)
		if role != "worker" {
			require.Error(t, api.Call(t.Context(), http.MethodPost, "/debug/workers/"+strings.ReplaceAll(w.WorkerID, "/", "%2F")+"/drain", nil, http.StatusOK, nil))
		}
	}
	var diagnosis v1.Diagnosis
	require.NoError(t, api.Call(t.Context(), http.MethodGet, "/debug/doctor", nil, http.StatusOK, &diagnosis))
	for _, check := range diagnosis.Checks {
		if check.Name == "roles" {
			require.Equal(t, job.Fine, check.Severity, check.Details)
		}
	}
}

func probesAreServed(t *testing.T, three map[job.Role]*rig.Orchestrator) {
	for role, want := range map[job.Role]string{
		job.RoleAPI:         `{"status":"ok","roles":["api"],"needs":[{"need":"database","met":true}]}`,
		job.RoleWorker:      `{"status":"ok","roles":["worker"],"needs":[{"need":"database","met":true},{"need":"plugins","met":true,"detail":"2 of 2 up"}]}`,
		job.RoleMaintenance: `{"status":"ok","roles":["maintenance"],"needs":[{"need":"database","met":true}]}`,
	} {
		o := three[role]
		status, text, err := page(t, o.Client, "/readyz")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, want, text)
		status, _, err = page(t, o.Client, "/healthz")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, prometheus(t, o), "holdfast_")
		wanted := http.StatusOK
		if role != job.RoleAPI {
			wanted = http.StatusNotFound
		}
		for _, path := range []string{"/jobs", "/job-types", "/debug/workers", "/openapi.json"} {
			status, text, err := page(t, o.Client, path)
			require.NoError(t, err)
			require.Equal(t, wanted, status, path)
			if role != job.RoleAPI {
				require.Contains(t, text, "this process does not serve the API (its roles: "+string(role)+")")
			}
		}
	}
	status, _, err := page(t, three[job.RoleWorker].Client, "/ui")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, status)
}

// A worker that does not serve the API is ready when its plugins are up.
func TestAWorkerWhosePluginsAreNotUpIsNotReady(t *testing.T) {
	oneProcess(t, "its only process has one role in both forms")
	t.Parallel()
	o := orchestrator(t, pgtest.URL(t), append(plugin(0, "storm", "testhandlers", "HOSTILE=exits at once"), "roles=worker")...)
	failing, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, 1)
	go func() {
		_, err := o.Start(failing)
		started <- err
	}()
	require.Eventually(t, func() bool {
		status, text, err := page(t, o.Client, "/readyz")
		return err == nil && status == http.StatusServiceUnavailable && strings.Contains(text, "the worker waits for its plugins: 0 of 1 up")
	}, patience, glance)
	cancel()
	require.ErrorContains(t, <-started, "did not become ready")
	require.NoError(t, o.ShutDown(t.Context()))
}

// Six processes have a role each, every role twice. Any two of them are killed and started
// again, one pair after another, while clients submit.
func TestNothingIsLostWhenAnyTwoOfSixProcessesAreKilled(t *testing.T) {
	oneProcess(t, "its six processes have one role each in both forms")
	url := pgtest.URL(t)
	effects := filepath.Join(t.TempDir(), "effects")
	var six []*rig.Orchestrator
	roles := append(job.AllRoles(), job.AllRoles()...)
	for i, role := range roles {
		settings := []string{"roles=" + string(role), fmt.Sprintf("worker.id=%s-%d", role, i), "jobs.default.max_crashes=100", "database.max_connections=6"}
		if role == job.RoleWorker {
			settings = append(settings, plugin(0, "storm", "testhandlers", "EFFECTS="+effects)...)
		}
		six = append(six, orchestrator(t, url, settings...))
		rigtest.Start(t, six[i])
	}
	db := pool(t, url)
	clients := submitUntilStopped(t, []*rig.Orchestrator{six[0], six[3]})

	pairs := everyPair(len(six))
	const submitted, ended = `select count(*) from jobs`, `select count(*) from jobs where finished_at is not null`
	more := func(query string) { awaitCount(t, db, query, count(t, db, query)+20) }
	for _, pair := range pairs {
		more(ended)
		for _, i := range pair {
			require.NoError(t, six[i].Kill())
		}
		// What needs neither of them goes on.
		if roles[pair[0]] != roles[pair[1]] || roles[pair[0]] == job.RoleMaintenance {
			more(ended)
		}
		if roles[pair[0]] == job.RoleWorker && roles[pair[1]] == job.RoleWorker {
			more(submitted)
		}
		for _, i := range pair {
			rigtest.Start(t, six[i])
		}
	}
	accepted := clients()
	awaitEnd(t, db)

	require.NotZero(t, accepted)
	require.EqualValues(t, accepted, count(t, db, `select count(*) from jobs`), "one job for each key")
	for i, k := range kinds {
		require.Zero(t, count(t, db, `select count(*) from jobs where state <> $1::job_state and idempotency_key like $2`, k.ends, fmt.Sprintf("%d-%%", i)),
			"jobs of kind %d that did not end %s", i, k.ends)
	}
	noStaleOwnerSettled(t, db)
	everySuccessHadItsEffect(t, db, effects)
	seriesAgrees(t, db, url)
	checks, err := ledger(t, url).Diagnose(t.Context())
	require.NoError(t, err)
	for _, check := range checks {
		if check.Name == "ledger_and_lists" || check.Name == "roles" {
			require.Equal(t, job.Fine, check.Severity, "%s: %v", check.Name, check.Details)
		}
	}
	require.NotZero(t, count(t, db, `select count(*) from job_attempts where outcome = 'interrupted'`),
		"nothing was interrupted: the kills hit nothing, and the test has shown nothing")
	t.Logf("%d jobs, %d interrupted attempts, %d pairs", accepted, count(t, db, `select count(*) from job_attempts where outcome = 'interrupted'`), len(pairs))
	for _, o := range six {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}

func everyPair(n int) (pairs [][2]int) {
	for a := range n {
		for b := a + 1; b < n; b++ {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	return pairs
}

// submitUntilStopped submits jobs of all kinds from some clients, each under a key of its own.
// A submission without an answer is sent again to the other server until it is accepted. The
// returned function stops that, and returns how many jobs were accepted.
func submitUntilStopped(t *testing.T, servers []*rig.Orchestrator) (stop func() int64) {
	t.Helper()
	const atOnce, pause = 4, 10 * time.Millisecond
	var next, accepted atomic.Int64
	stopped := make(chan struct{})
	clients, ctx := errgroup.WithContext(t.Context())
	for range atOnce {
		clients.Go(func() error {
			for {
				select {
				case <-stopped:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(pause):
				}
				i := int(next.Add(1))
				k := kinds[i%len(kinds)]
				submission := rig.Submission{
					JobType: "WORK", Payload: k.work, MaxAttempts: k.maxAttempts, IdempotencyKey: fmt.Sprintf("%d-%d", i%len(kinds), i),
				}
				for try := i; ; try++ {
					if _, err := servers[try%len(servers)].Submit(ctx, submission); err == nil {
						break
					}
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(pause):
					}
				}
				accepted.Add(1)
			}
		})
	}
	return func() int64 {
		close(stopped)
		require.NoError(t, clients.Wait())
		return accepted.Load()
	}
}
