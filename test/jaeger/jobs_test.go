package jaeger

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/jobtrace"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const own = "the handler's own"

func TestJaegerHasTheTraceOfEachJob(t *testing.T) {
	need(t)
	o := orchestrator(t, jobtrace.FailTwice()...)

	t.Run("that succeeds", func(t *testing.T) {
		id := rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
		rigtest.Await(t, o, id, "COMPLETED")
		story := told(t, seen(t, o, id).TraceID, complete(1, "POST /jobs", "send TRACE", "process TRACE", own))
		sound(t, story)
		jobtrace.Succeeded(t, story, id, "teller")
	})

	t.Run("that fails twice", func(t *testing.T) {
		id := rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 2}})
		rigtest.Await(t, o, id, "COMPLETED")
		of := seen(t, o, id).TraceID
		arrive(t, of, complete(1, "POST /jobs", "send TRACE"))
		story := told(t, of, complete(3, "process TRACE", own))
		sound(t, story)
		jobtrace.FailedTwice(t, story)
	})

	t.Run("that times out", func(t *testing.T) {
		id := rigtest.Submit(t, o, rig.Submission{JobType: "IGNORE_CANCEL", MaxAttempts: 1})
		rigtest.Await(t, o, id, "FAILED")
		story := told(t, seen(t, o, id).TraceID, complete(1, "POST /jobs", "send IGNORE_CANCEL", "process IGNORE_CANCEL"))
		sound(t, story)
		jobtrace.TimedOut(t, story)
	})

	t.Run("whose handler is killed", func(t *testing.T) {
		id := rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 60_000}, MaxAttempts: 1})
		of := seen(t, o, id).TraceID
		arrive(t, of, complete(1, own))
		for _, handler := range o.Handlers("testhandlers") {
			require.NoError(t, handler.Signal(syscall.SIGKILL))
		}
		rigtest.Await(t, o, id, "FAILED")
		story := told(t, of, complete(1, "POST /jobs", "send TRACE", "process TRACE", own))
		sound(t, story)
		jobtrace.Crashed(t, story)
	})

	t.Run("of a batch", func(t *testing.T) {
		one := map[string]any{"jobType": "TRACE", "payload": map[string]any{}}
		var accepted struct {
			Jobs []struct {
				ID string `json:"jobId"`
			} `json:"jobs"`
		}
		require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs/batch", []any{one, one, one}, http.StatusAccepted, &accepted))
		require.Len(t, accepted.Jobs, 3)
		traces := make(map[string]bool)
		for _, job := range accepted.Jobs {
			rigtest.Await(t, o, job.ID, "COMPLETED")
			story := told(t, seen(t, o, job.ID).TraceID, complete(1, "send TRACE", "process TRACE", own))
			traces[story[0].Trace] = true
			require.NotEmpty(t, story[0].Links)
			request := told(t, story[0].Links[0].Trace, complete(1, "POST /jobs/batch"))
			sound(t, append(story, request...))
			jobtrace.OfABatch(t, story, request[0])
		}
		require.Len(t, traces, 3)
	})

	require.Contains(t, services(t), "holdfast")
	known := operations(t, "holdfast")
	for _, want := range []operation{
		{"POST /jobs", "server"},
		{"POST /jobs/batch", "server"},
		{"send TRACE", "producer"},
		{"queue wait TRACE", "internal"},
		{"process TRACE", "consumer"},
		{"retry wait TRACE", "internal"},
		{"process IGNORE_CANCEL", "consumer"},
	} {
		require.Contains(t, known, want)
	}
	shutDown(t, o)
}

func TestTheLinkOfAJobLeadsToItsTrace(t *testing.T) {
	need(t)
	o := orchestrator(t)
	id := rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	rigtest.Await(t, o, id, "COMPLETED")
	shown := seen(t, o, id)
	require.Equal(t, queries+"/trace/"+shown.TraceID, shown.TraceURL)
	story := told(t, shown.TraceID, complete(1, "POST /jobs", "send TRACE", "process TRACE", own))
	require.Equal(t, id, jobtrace.Process(t, story, 1).Attributes["job.id"])
	status, page := get(t, "/trace/"+shown.TraceID, nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, string(page), "<html")

	require.Contains(t, operate(t, o, `orchestrator inspect "$JOB"`, id), shown.TraceURL)

	manual, err := os.ReadFile("../../docs/reference/telemetry.md")
	require.NoError(t, err)
	command := regexp.MustCompile("(?s)```sh\n(trace=.*?)```").FindSubmatch(manual)
	require.NotNil(t, command)
	drawn := operate(t, o, strings.ReplaceAll(string(command[1]), "http://localhost:16686", queries), id)
	require.Equal(t, jobtrace.AtOnce, regexp.MustCompile(`  [\d.]+ ms\n`).ReplaceAllString(drawn, "\n"))
	shutDown(t, o)
}

// With so many jobs, it is likely that truncation to microseconds puts the end of one of
// them before its last event.
func TestJaegersPageShowsWhyAJobIsDead(t *testing.T) {
	need(t)
	o := orchestrator(t)
	var ids []string
	for range 40 {
		ids = append(ids, rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 1, "checkpoints": 5}, MaxAttempts: 1}))
	}
	for _, id := range ids {
		rigtest.Await(t, o, id, "FAILED")
		of := seen(t, o, id).TraceID
		arrive(t, of, complete(1, "POST /jobs", "send TRACE", "queue wait TRACE", "process TRACE", own))
		spans := page(t, of)
		run := spans[slices.IndexFunc(spans, func(span pageSpan) bool { return span.OperationName == "process TRACE" })]
		require.Contains(t, visible(spans, run), "exception")
		require.Len(t, run.Logs, 2, "the last checkpoint, and the error")
		require.Equal(t, "attempt 1 of 1: attempt 1 is to fail; dead", tag(run.Tags, "otel.status_description"))
	}
	shutDown(t, o)
}

func TestInspectMakesNoTrace(t *testing.T) {
	need(t)
	service := "holdfast-inspected-" + strings.ToLower(rand.Text()[:8])
	t.Setenv("OTEL_SERVICE_NAME", service)
	o := orchestrator(t)
	id := rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	rigtest.Await(t, o, id, "COMPLETED")
	operate(t, o, `orchestrator inspect "$JOB"; orchestrator logs "$JOB"`, id)
	of := seen(t, o, id).TraceID
	shutDown(t, o) // sends all spans
	arrive(t, of, complete(1, "process TRACE"))
	for _, operation := range operations(t, service) {
		require.NotContains(t, operation.Name, "/debug/")
	}
}

func TestJaegersPagesDoNotWarnOfClocksThatAgree(t *testing.T) {
	need(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "ip=127.0.0.1,host.ip=127.0.0.1") // as in the documentation
	o := orchestrator(t, jobtrace.FailTwice()...)
	for range 5 {
		id := rigtest.Submit(t, o, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 2}})
		rigtest.Await(t, o, id, "COMPLETED")
		of := seen(t, o, id).TraceID
		arrive(t, of, complete(1, "POST /jobs", "send TRACE"))
		arrive(t, of, complete(3, "process TRACE", own))
		requireNoWarnings(t, of)
	}
	shutDown(t, o)
}

// operate runs an operator's command about the job and returns what it prints.
func operate(t *testing.T, o *rig.Orchestrator, command, id string) string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "JOB="+id,
		"HOLDFAST_SERVER=http://"+o.Address, "HOLDFAST_USER=admin", "HOLDFAST_PASSWORD="+o.Password)
	said, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return string(said)
}

// detail is what operators see about a job's trace.
type detail struct {
	TraceID  string `json:"traceId"`
	TraceURL string `json:"traceUrl"`
}

func seen(t *testing.T, o *rig.Orchestrator, id string) detail {
	t.Helper()
	var shown detail
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &shown))
	require.NotEmpty(t, shown.TraceID)
	return shown
}

func shutDown(t *testing.T, o *rig.Orchestrator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, o.ShutDown(ctx))
}
