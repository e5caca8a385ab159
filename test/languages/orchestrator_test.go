package languages

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

func TestTheOrchestratorRunsTheExamplesJobs(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		url := pgtest.URL(t)
		o := orchestrator(t, l, l.example, url)
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		_, err := o.Start(ctx)
		require.NoError(t, err)

		echo := rigtest.Submit(t, o, rig.Submission{JobType: l.prefix + "ECHO", Payload: map[string]any{"text": "Grüße, 世界"}})
		done, err := o.Await(ctx, echo, "COMPLETED")
		require.NoError(t, err)
		require.JSONEq(t, `{"text":"Grüße, 世界","attempt":1}`, string(done.Result))
		_, err = o.Submit(ctx, rig.Submission{JobType: l.prefix + "ECHO", Payload: map[string]any{"text": 7}})
		require.ErrorContains(t, err, "422", "the payload does not fit the schema")

		for how, status := range map[string]string{
			"error": "FAILED", "permanent": "FAILED", "retry_after": "FAILED", "cancel": "CANCELED", "snooze": "COMPLETED",
		} {
			id := rigtest.Submit(t, o, rig.Submission{JobType: l.prefix + "FAIL", Payload: map[string]any{"how": how, "seconds": 0.05}})
			_, err := o.Await(ctx, id, status)
			require.NoError(t, err, how)
		}
		slow, err := o.Submit(ctx, rig.Submission{
			JobType: l.prefix + "FAIL", Payload: map[string]any{"how": "slow"}, MaxAttempts: 1, Timeout: "500ms",
		})
		require.NoError(t, err)
		_, err = o.Await(ctx, slow, "FAILED")
		require.NoError(t, err)
		require.Equal(t, job.Timeout, attempts(t, url, slow)[0].Outcome)

		resumesAfterAKill(ctx, t, l, o, url)

		long := rigtest.Submit(t, o, rig.Submission{JobType: l.prefix + "COUNT", Payload: map[string]any{"to": 1000, "stepSeconds": 0.05}})
		_, err = o.AwaitThat(ctx, long, func(j rig.Job) bool { return len(j.Progress) > 0 })
		require.NoError(t, err)
		require.NoError(t, o.Call(ctx, "POST", "/jobs/"+long+"/cancel", nil, 200, nil))
		_, err = o.Await(ctx, long, "CANCELED")
		require.NoError(t, err)
		require.NoError(t, o.ShutDown(ctx))
	})
}

// The checks mostly wait, for leases and deadlines, so the languages run in parallel.
func TestTheExampleKeepsToTheProtocol(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		t.Parallel()
		binary, err := build()
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
		defer cancel()
		said, err := exec.CommandContext(ctx, binary, "plugins", "check", l.example, "--env", "PATH="+l.path(),
			"--type", l.prefix+"ECHO", "--payload", `{"text":"hello"}`,
			"--slow-type", l.prefix+"COUNT", "--slow-payload", `{"to":3600}`,
			"--fail-type", l.prefix+"FAIL", "--fail-payload", `{"how":"error"}`).CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), " 0 failed, 0 skipped")
	})
}

// resumesAfterAKill kills the plugin process during a job. The next attempt continues at
// the checkpoint.
func resumesAfterAKill(ctx context.Context, t *testing.T, l interpreted, o *rig.Orchestrator, url string) {
	t.Helper()
	id := rigtest.Submit(t, o, rig.Submission{JobType: l.prefix + "COUNT", Payload: map[string]any{"to": 60, "stepSeconds": 0.05}})
	_, err := o.AwaitThat(ctx, id, func(j rig.Job) bool {
		var at struct{ Counted int }
		return json.Unmarshal(j.Progress, &at) == nil && at.Counted >= 5
	})
	require.NoError(t, err)
	handlers := o.Handlers(filepath.Base(l.interpreter))
	require.Len(t, handlers, 1)
	require.NoError(t, handlers[0].Signal(syscall.SIGKILL))
	done, err := o.Await(ctx, id, "COMPLETED")
	require.NoError(t, err)
	var result struct{ BegunAt int }
	require.NoError(t, json.Unmarshal(done.Result, &result))
	require.GreaterOrEqual(t, result.BegunAt, 5)
	require.Len(t, attempts(t, url, id), 2)
}

// orchestrator is one with the program as its plugin.
func orchestrator(t *testing.T, l interpreted, program, url string, settings ...string) *rig.Orchestrator {
	t.Helper()
	binary, err := build()
	require.NoError(t, err)
	return rigtest.New(t, binary, t.TempDir(), append([]string{
		"database.url=" + url,
		"worker.lease=3s",
		"worker.kill_grace=500ms",
		"jobs.default.retry.backoff=fixed",
		"jobs.default.retry.initial_delay=20ms",
		"plugins.0.name=example",
		"plugins.0.path=" + program,
		"plugins.0.env.PATH=" + l.path(),
	}, settings...)...)
}

// build builds the orchestrator, once for all languages.
var build = sync.OnceValues(func() (string, error) {
	dir, err := rigtest.Build("../../bin/languages", "../../cmd/orchestrator")
	return filepath.Join(dir, "orchestrator"), err
})

// attempts are the ended attempts of a job, from the ledger.
func attempts(t *testing.T, url, id string) []job.Attempt {
	t.Helper()
	s := storetest.Open(t, url, 2)
	parsed, err := job.ParseID(id)
	require.NoError(t, err)
	detail, err := s.Detail(t.Context(), parsed)
	require.NoError(t, err)
	return detail.Attempts
}
