package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func TestHandlersThatExceedLimitsAreContainedAndTheAPISaysWhy(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	settings := append(plugin(0, "good", "testhandlers"), plugin(1, "greedy", "testhandlers", "TYPE_PREFIX=GREEDY_")...)
	settings = append(settings, "plugins.1.limits.memory=512MiB", "plugins.1.limits.cpus=0.5", "plugins.1.limits.processes=200")
	// A handler that takes the whole machine, until its limit ends it, may not renew a short lease in time.
	settings = append(settings, "worker.lease=1m")
	o := orchestrator(t, url, settings...)
	rigtest.Start(t, o)
	good := o.Handlers("testhandlers")

	for _, c := range []struct {
		jobType string
		timeout string // a slow machine takes long to fill the memory
		outcome job.OutcomeKind
		why     string
	}{
		{"GREEDY_BALLOON", "10m", job.Crash, "out of memory"},
		{"GREEDY_FORK_BOMB", "10m", job.Crash, "killed: more than 200 processes and threads"},
		{"GREEDY_SPIN", "2s", job.Timeout, "ran longer than 2s"},
	} {
		greedy := rigtest.Submit(t, o, rig.Submission{JobType: c.jobType, MaxAttempts: 1, Timeout: c.timeout})
		// Meanwhile, the API answers and jobs of the other plugin run.
		for done := false; !done; {
			rigtest.Await(t, o, rigtest.Submit(t, o, rig.Submission{JobType: "WORK"}), "COMPLETED")
			now, err := o.Get(t.Context(), greedy)
			require.NoError(t, err)
			done = now.Status == "FAILED"
		}
		var detail struct {
			Attempts []struct {
				Outcome            job.OutcomeKind
				Code, Error, Stack string
			}
		}
		require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/jobs/"+greedy, nil, http.StatusOK, &detail))
		require.NotEmpty(t, detail.Attempts)
		last := len(detail.Attempts) - 1
		for _, unbegun := range detail.Attempts[:last] { // claimed for a process that was just killed
			require.Equal(t, job.Released, unbegun.Outcome)
		}
		attempt := detail.Attempts[last]
		require.Equal(t, c.outcome, attempt.Outcome, c.jobType)
		told := attempt.Code + " " + attempt.Error + " " + attempt.Stack
		if !strings.Contains(told, "ThreadSanitizer failed to allocate") { // the race detector fails before the handler does
			require.Contains(t, told, c.why)
		}
	}
	require.Eventually(t, func() bool { return len(o.Handlers("testhandlers")) == 2 }, patience, glance)
	survivors := 0
	for _, p := range good {
		if p.Alive() {
			survivors++
		}
	}
	require.Equal(t, 1, survivors, "the good plugin's process was there all the time")
	o.Look()
	require.NoError(t, o.Kill())
	_, err := o.NoneLeft(t.Context())
	require.NoError(t, err)
}
