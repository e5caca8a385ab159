package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// In addition, each hostile plugin prints in init.
func TestHostileHandlersHarmNobodyElse(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	settings := plugin(0, "good", "testhandlers")
	settings = append(settings, plugin(1, "flooding", "testhandlers", "TYPE_PREFIX=FLOOD_", "HOSTILE=floods stderr")...)
	settings = append(settings, plugin(2, "forking", "testhandlers", "TYPE_PREFIX=FORK_", "HOSTILE=forks")...)
	settings = append(settings, plugin(3, "leaving", "testhandlers", "TYPE_PREFIX=LEAVE_", "HOSTILE=exits at once")...)
	settings = append(settings, plugin(4, "stopping", "testhandlers", "TYPE_PREFIX=STOP_")...)
	settings = append(settings, "jobs.accept_unknown_types=true")
	o := orchestrator(t, url, settings...)
	rigtest.Start(t, o)

	hostile := map[string]rig.Submission{
		"never served": {JobType: "LEAVE_WORK"},
		"frozen":       {JobType: "STOP_STOP", MaxAttempts: 1},
		"stubborn":     {JobType: "FLOOD_IGNORE_CANCEL", MaxAttempts: 2},
		"crashing":     {JobType: "FORK_CRASH", MaxAttempts: 3},
	}
	ids := make(map[string]string)
	for name, submission := range hostile {
		ids[name] = rigtest.Submit(t, o, submission)
	}
	rigtest.Await(t, o, ids["frozen"], "RUNNING")
	// Meanwhile the good plugin's jobs continue, and so do good jobs of the plugins
	// that only print.
	meanwhile := 0
	for range 50 {
		good := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", Payload: map[string]any{"millis": 1}})
		rigtest.Await(t, o, good, "COMPLETED")
		if still, err := o.Get(t.Context(), ids["frozen"]); err == nil && still.Status == "RUNNING" {
			meanwhile++
		}
	}
	require.NotZero(t, meanwhile, "jobs that were done while another plugin was frozen")
	noisy := rigtest.Submit(t, o, rig.Submission{JobType: "FLOOD_WORK"})

	s := ledger(t, url)
	rigtest.Await(t, o, ids["stubborn"], "FAILED")
	require.Equal(t, []job.OutcomeKind{job.Timeout, job.Timeout}, charged(attempts(t, s, ids["stubborn"])))
	rigtest.Await(t, o, ids["crashing"], "FAILED")
	require.Equal(t, []job.OutcomeKind{job.Crash, job.Crash, job.Crash}, charged(attempts(t, s, ids["crashing"])))
	rigtest.Await(t, o, ids["frozen"], "FAILED")
	rigtest.Await(t, o, noisy, "COMPLETED")
	still, err := o.Get(t.Context(), ids["never served"])
	require.NoError(t, err)
	require.Equal(t, "PENDING", still.Status, "jobs of a plugin that cannot start wait unharmed")

	o.Look()
	require.NoError(t, o.ShutDown(t.Context()))
	_, err = o.NoneLeft(t.Context())
	require.NoError(t, err)
}

func TestHandlersThatReportInALoopDelayNobody(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	settings := append(plugin(0, "good", "testhandlers"), plugin(1, "reporting", "testhandlers", "TYPE_PREFIX=LOUD_")...)
	o := orchestrator(t, url, settings...)
	rigtest.Start(t, o)
	over := filepath.Join(t.TempDir(), "over")
	var loud []string
	for range 50 {
		loud = append(loud, rigtest.Submit(t, o, rig.Submission{
			JobType: "LOUD_REPORT", MaxAttempts: 1, Timeout: "1h", Payload: map[string]any{"when": over, "millis": 3_600_000},
		}))
	}
	for _, id := range loud {
		rigtest.Await(t, o, id, "RUNNING")
	}
	for range 50 {
		good := rigtest.Submit(t, o, rig.Submission{JobType: "WORK"})
		rigtest.Await(t, o, good, "COMPLETED")
	}
	for _, id := range loud {
		still, err := o.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "RUNNING", still.Status, "while the others report")
	}
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	for _, id := range loud {
		require.Equal(t, `"the last"`, string(rigtest.Await(t, o, id, "COMPLETED").Progress))
	}
	require.NoError(t, o.ShutDown(t.Context()))
}

func TestABystanderOfAKilledHandlerIsNotCharged(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := orchestrator(t, url, plugin(0, "good", "testhandlers")...)
	rigtest.Start(t, o)
	stubborn := rigtest.Submit(t, o, rig.Submission{JobType: "IGNORE_CANCEL", MaxAttempts: 1})
	bystander := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", MaxAttempts: 1, Payload: map[string]any{"millis": 2000}})

	rigtest.Await(t, o, stubborn, "FAILED")
	rigtest.Await(t, o, bystander, "COMPLETED")
	s := ledger(t, url)
	require.Equal(t, []job.OutcomeKind{job.Timeout}, charged(attempts(t, s, stubborn)))
	require.Equal(t, []job.OutcomeKind{job.Success}, charged(attempts(t, s, bystander)))
	require.NoError(t, o.ShutDown(t.Context()))
}

// charged are the outcomes of the attempts, except those that never got a slot.
func charged(ended []job.Attempt) (kinds []job.OutcomeKind) {
	for _, attempt := range ended {
		if attempt.Outcome != job.Released {
			kinds = append(kinds, attempt.Outcome)
		}
	}
	return kinds
}

func TestOddCharactersPassOrFailAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := orchestrator(t, url, plugin(0, "good", "testhandlers")...)
	rigtest.Start(t, o)
	odd := json.RawMessage(`{"text": "\u0000 and \ud800", "n": 1.000000000000000000001}`)

	asResult := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", Payload: map[string]any{"result": odd}})
	asError := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", MaxAttempts: 1, Payload: map[string]any{"error": "a NUL in the text"}})
	good := rigtest.Submit(t, o, rig.Submission{JobType: "WORK"})

	require.JSONEq(t, string(odd), string(rigtest.Await(t, o, asResult, "COMPLETED").Result))
	rigtest.Await(t, o, asError, "FAILED")
	rigtest.Await(t, o, good, "COMPLETED")
	ended := attempts(t, ledger(t, url), asError)
	require.Len(t, ended, 1)
	require.True(t, strings.HasPrefix(ended[0].Error, "a \uFFFD in the text"), ended[0].Error)
	require.NoError(t, o.ShutDown(t.Context()))
}

func TestASecondSignalStopsAtOnceAndTheJobIsRecovered(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	settings := append(plugin(0, "good", "testhandlers"), "worker.drain_timeout=1h")
	o := orchestrator(t, url, settings...)
	rigtest.Start(t, o)
	over := filepath.Join(t.TempDir(), "over")
	id := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", MaxAttempts: 1, Timeout: "1h", Payload: map[string]any{"when": over}})
	rigtest.AwaitHandlers(t, o, 1)
	o.Look()

	require.NoError(t, o.Signal(syscall.SIGTERM))
	awaitClosed(t, o)
	require.NoError(t, o.Signal(syscall.SIGTERM))
	ended := o.Ended(t.Context())
	require.ErrorContains(t, ended, "exit status 143")
	require.NotContains(t, strings.ReplaceAll(ended.Error(), "exit status 143", ""), "exit status", "no process ends otherwise")
	_, err := o.NoneLeft(t.Context())
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(over, nil, 0o600))
	rigtest.Start(t, o)
	rigtest.Await(t, o, id, "COMPLETED")
	require.NoError(t, o.ShutDown(t.Context()))
}

// awaitClosed waits until no process of the orchestrator answers any more: each has seen its signal.
// A second signal before that would be lost, because the kernel keeps one of each kind.
func awaitClosed(t *testing.T, o *rig.Orchestrator) {
	t.Helper()
	for _, server := range o.Servers() {
		require.Eventually(t, func() bool {
			return server.Call(t.Context(), http.MethodGet, "/healthz", nil, http.StatusOK, nil) != nil
		}, patience, glance, "the API closes first")
	}
}

func TestADrainLetsRunningJobsFinish(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := orchestrator(t, url, append(plugin(0, "good", "testhandlers"), "worker.drain_timeout=1h")...)
	rigtest.Start(t, o)
	over := filepath.Join(t.TempDir(), "over")
	id := rigtest.Submit(t, o, rig.Submission{JobType: "WORK", MaxAttempts: 1, Timeout: "1h", Payload: map[string]any{"when": over}})
	rigtest.AwaitHandlers(t, o, 1)
	o.Look()
	require.NoError(t, o.Signal(syscall.SIGTERM))
	awaitClosed(t, o)
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	require.NoError(t, o.Ended(t.Context()))
	require.Equal(t, []job.OutcomeKind{job.Success}, charged(attempts(t, ledger(t, url), id)))
}
