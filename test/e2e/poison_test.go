package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// Fifty jobs are in one process, and one of them kills it whenever it runs.
func TestAPoisonJobIsFoundAndNobodyElseIsCharged(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	url := pgtest.URL(t)
	settings := append(plugin(0, "good", "testhandlers"), "worker.crash_policy=expire", "worker.lease="+lease.String())
	o := orchestrator(t, url, settings...)
	rigtest.Start(t, o)
	now := filepath.Join(t.TempDir(), "now")
	guilty := rigtest.Submit(t, o, rig.Submission{JobType: "DIE", Payload: map[string]any{"when": now}})
	innocent := make([]string, 49)
	for i := range innocent {
		innocent[i] = rigtest.Submit(t, o, rig.Submission{
			JobType: "WORK", MaxAttempts: 1, Timeout: "1h", Payload: map[string]any{"firstMillis": 3_600_000},
		})
	}
	db := pool(t, url)
	awaitCount(t, db, `select count(*) from leases`, 50)
	for _, id := range innocent {
		rigtest.Await(t, o, id, "RUNNING")
	}

	require.NoError(t, os.WriteFile(now, nil, 0o600))
	died := time.Now()
	others := 0
	for last := died; count(t, db, `select count(*) from jobs where finished_at is null`) > 0; others++ {
		require.Less(t, time.Since(died), 4*patience, "jobs that have not ended")
		rigtest.Await(t, o, rigtest.Submit(t, o, rig.Submission{JobType: "WORK"}), "COMPLETED")
		require.Less(t, time.Since(last), lease, "the plugin's other work stalls")
		last = time.Now()
	}
	require.Greater(t, others, 5)

	s := ledger(t, url)
	for _, id := range innocent {
		require.Equal(t, []job.OutcomeKind{job.Suspect, job.Success}, charged(attempts(t, s, id)))
	}
	require.Equal(t, 49, count(t, db, `select count(*) from jobs
		where state = 'succeeded' and attempt = 1 and max_attempts = 1 and crashes = 0`))
	require.Equal(t, []job.OutcomeKind{job.Suspect, job.Crash, job.Crash}, charged(attempts(t, s, guilty)))
	detail := detailOf(t, o, guilty)
	require.Equal(t, "dead", detail.State)
	require.Equal(t, 3, detail.Crashes)
	require.Equal(t, 2, detail.AttemptsCharged)
	// On a busy machine, the end of a process may become known only long after that of its stream.
	require.Regexp(t, `^its handler's process died 3 times under it, the last time alone: plugin good, pid \d+: (signal: killed \(SIGKILL\)|stream closed: .*)$`, detail.LastError)
	require.NoError(t, o.ShutDown(t.Context()))
}

// After a plugin process died, its leases run out, or the orchestrator gives them back,
// as configured. Either way the orchestrator records the reason, because it knows more
// than a reaper.
func TestADeadProcessLeavesItsReasonUnderEachCrashPolicy(t *testing.T) {
	const lease = 20 * time.Second
	for after, bounds := range map[string][2]time.Duration{"expire": {lease, patience}, "release": {0, lease * 9 / 10}} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			settings := append(plugin(0, "good", "testhandlers"), "worker.crash_policy="+after, "worker.lease="+lease.String())
			o := orchestrator(t, url, settings...)
			var before time.Time // by the database's clock: a worker counts from when it asks, which may be before it finds the job
			require.NoError(t, pool(t, url).QueryRow(t.Context(), `select clock_timestamp()`).Scan(&before))
			rigtest.Start(t, o)
			id := rigtest.Submit(t, o, rig.Submission{JobType: "CRASH", MaxAttempts: 1})
			rigtest.Await(t, o, id, "FAILED")
			ended := attempts(t, ledger(t, url), id)
			require.Equal(t, []job.OutcomeKind{job.Crash}, charged(ended))
			require.Contains(t, ended[0].Error, "exit status 2")
			require.GreaterOrEqual(t, ended[0].EndedAt.Sub(before), bounds[0])
			require.Less(t, ended[0].EndedAt.Sub(ended[0].ClaimedAt), bounds[1])
			require.NoError(t, o.ShutDown(t.Context()))
		})
	}
}

// detail is what operators see about a job.
type detail struct {
	State           string `json:"state"`
	AttemptsCharged int    `json:"attemptsCharged"`
	Crashes         int    `json:"crashes"`
	LastError       string `json:"lastError"`
}

func detailOf(t *testing.T, o *rig.Orchestrator, id string) detail {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var d detail
	require.NoError(t, o.Call(ctx, "GET", "/debug/jobs/"+id, nil, 200, &d))
	return d
}
