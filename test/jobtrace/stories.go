package jobtrace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// AtOnce is the tree of a TRACE job with one attempt.
const AtOnce = `POST /jobs
  send TRACE
    queue wait TRACE
    process TRACE
      the handler's own
`

// Succeeded checks the trace of a TRACE job that may have four attempts and succeeded in
// its first, on the worker.
func Succeeded(t testing.TB, story []collector.Span, id, worker string) {
	t.Helper()
	require.Equal(t, AtOnce, collector.Tree(story, ""))

	require.Equal(t, otlp.Span_SPAN_KIND_SERVER, story[0].Kind)
	require.Subset(t, story[0].Attributes, map[string]any{
		"http.request.method": "POST", "http.route": "/jobs", "http.response.status_code": int64(202), "client.address": "127.0.0.1",
	})
	send := story[1]
	require.Equal(t, otlp.Span_SPAN_KIND_PRODUCER, send.Kind)
	require.Subset(t, send.Attributes, map[string]any{
		"messaging.system": "holdfast", "messaging.operation.type": "send", "messaging.destination.name": "TRACE",
		"messaging.message.id": id, "job.id": id, "job.type": "TRACE", "job.tenant": "default", "job.state": "queued", "job.replayed": false,
	})
	wait := collector.Named(story, "queue wait TRACE")[0]
	run := Process(t, story, 1)
	require.Equal(t, otlp.Span_SPAN_KIND_CONSUMER, run.Kind)
	require.Equal(t, wait.End, run.Start)
	require.False(t, run.Failed)
	require.Empty(t, run.Links)
	require.Equal(t, []string{"job.checkpoint"}, Events(run))
	require.Subset(t, run.Attributes, map[string]any{
		"messaging.system": "holdfast", "messaging.operation.type": "process", "messaging.operation.name": "process",
		"messaging.destination.name": "TRACE", "messaging.message.id": id, "job.id": id, "job.type": "TRACE",
		"job.attempt": int64(1), "job.max_attempts": int64(4), "job.fence": int64(1), "job.plugin": "shop",
		"job.outcome": "succeeded", "job.state": "succeeded", "job.checkpoints": int64(1),
	})
	require.Contains(t, run.Attributes, "job.plugin.version")
	require.True(t, strings.HasPrefix(run.Attributes["job.worker"].(string), worker+"/"), run.Attributes["job.worker"])
	require.Equal(t, "holdfast", run.Resource["service.name"])
	require.Equal(t, run.Attributes["job.worker"], run.Resource["service.instance.id"])
}

// FailTwice are the settings that FailedTwice needs.
func FailTwice() []string {
	return []string{"jobs.default.retry.initial_delay=150ms", "jobs.default.retry.jitter_min=1", "jobs.default.retry.jitter_max=1"}
}

// FailedTwice checks the trace of a TRACE job that failed twice and then succeeded.
func FailedTwice(t testing.TB, story []collector.Span) {
	t.Helper()
	require.Equal(t, `POST /jobs
  send TRACE
    queue wait TRACE
    process TRACE
      the handler's own
    retry wait TRACE
    queue wait TRACE
    process TRACE
      the handler's own
    retry wait TRACE
    queue wait TRACE
    process TRACE
      the handler's own
`, collector.Tree(story, ""))
	for attempt := int64(1); attempt <= 3; attempt++ {
		run := Process(t, story, attempt)
		require.Equal(t, attempt, run.Attributes["job.fence"])
		if attempt > 1 {
			before := Process(t, story, attempt-1)
			require.Equal(t, []collector.Link{{
				Trace: run.Trace, Span: before.ID, Attributes: map[string]any{"job.link": "previous attempt"},
			}}, run.Links)
			require.Equal(t, true, run.Attributes["job.resumed"])
			wait := collector.Named(story, "retry wait TRACE")[attempt-2]
			require.Equal(t, attempt, wait.Attributes["job.attempt"])
			require.InDelta(t, 0.15, wait.End.Sub(wait.Start).Seconds(), 0.001)
			require.False(t, wait.Start.Before(before.End))
		}
		if attempt < 3 {
			require.True(t, run.Failed)
			require.Equal(t, fmt.Sprintf("attempt %d of 4: attempt %[1]d is to fail; retry in 150 ms", attempt), run.Status)
			require.Equal(t, []string{"job.checkpoint", "exception"}, Events(run))
			require.Contains(t, run.Events[1].Attributes["exception.message"], "is to fail")
			require.Subset(t, run.Attributes, map[string]any{
				"job.outcome": "failed", "job.state": "retry", "error.type": "failed", "job.retry.delay": 0.15,
			})
		} else {
			require.False(t, run.Failed)
		}
	}
}

// TimedOut checks the trace of an IGNORE_CANCEL job that may have one attempt and has a
// grace period of 300 ms.
func TimedOut(t testing.TB, story []collector.Span) {
	t.Helper()
	require.Equal(t, "POST /jobs\n  send IGNORE_CANCEL\n    queue wait IGNORE_CANCEL\n    process IGNORE_CANCEL\n", collector.Tree(story, ""))
	run := Process(t, story, 1)
	require.True(t, run.Failed)
	require.Equal(t, []string{"job.timed_out", "job.killed", "exception"}, Events(run))
	require.Subset(t, run.Attributes, map[string]any{
		"job.outcome": "timeout", "job.state": "dead", "error.type": "timeout",
		"job.attempt": int64(1), "job.max_attempts": int64(1), "job.plugin": "shop",
	})
	require.NotContains(t, run.Attributes, "job.crashed", "it was killed because of its timeout")
	require.GreaterOrEqual(t, run.Events[0].At.Sub(run.Start), 300*time.Millisecond, "its time")
	require.GreaterOrEqual(t, run.Events[1].At.Sub(run.Events[0].At), 300*time.Millisecond, "the grace")
	require.Equal(t, run.End.Add(-time.Microsecond), run.Events[2].At)
	require.Regexp(t, "^attempt 1 of 1: .+; dead$", run.Status)
}

// Crashed checks the trace of a TRACE job that may have one attempt and whose plugin
// process was killed.
func Crashed(t testing.TB, story []collector.Span) {
	t.Helper()
	require.Equal(t, AtOnce, collector.Tree(story, ""))
	run := Process(t, story, 1)
	require.True(t, run.Failed)
	require.Equal(t, []string{"exception"}, LaterEvents(run))
	require.Regexp(t, "^attempt 1 of 1: .*killed.*; dead$", run.Status)
	require.Subset(t, run.Attributes, map[string]any{
		"job.outcome": "crashed", "job.crashed": true, "error.type": "crashed", "job.state": "dead", "job.plugin": "shop",
		"job.attempt": int64(1),
	})
	require.NotContains(t, run.Attributes, "job.reaped_by", "its worker reports it")
}

// Lapsed checks the trace of a TRACE job whose plugin process was killed, whose lease then
// ran out, and whose second attempt succeeded.
func Lapsed(t testing.TB, story []collector.Span, outcome string) {
	t.Helper()
	again := map[string]string{"crashed": "    retry wait TRACE\n"}[outcome]
	require.Equal(t, AtOnce+"    lease wait TRACE\n"+again+`    queue wait TRACE
    process TRACE
      the handler's own
`, collector.Tree(story, ""))
	lost, next := collector.Named(story, "process TRACE")[0], collector.Named(story, "process TRACE")[1]
	require.Equal(t, outcome, lost.Attributes["job.outcome"])
	wait := collector.Named(story, "lease wait TRACE")[0]
	require.Equal(t, lost.End, wait.Start)
	require.Greater(t, wait.End.Sub(wait.Start), 250*time.Millisecond, "no handler starts with less than a quarter of its lease left")
	require.False(t, next.Start.Before(wait.End))
	for _, key := range []string{"job.id", "job.attempt", "job.fence", "job.worker"} {
		require.Equal(t, lost.Attributes[key], wait.Attributes[key], key)
	}
}

// OfABatch checks the trace of a TRACE job that a request submitted in a batch.
func OfABatch(t testing.TB, story []collector.Span, request collector.Span) {
	t.Helper()
	require.Equal(t, "send TRACE\n  queue wait TRACE\n  process TRACE\n    the handler's own\n", collector.Tree(story, ""))
	send, run := story[0], Process(t, story, 1)
	require.Equal(t, []collector.Link{{
		Trace: request.Trace, Span: request.ID, Attributes: map[string]any{"job.link": "request"},
	}}, send.Links)
	require.Subset(t, send.Attributes, map[string]any{
		"messaging.operation.type": "send", "messaging.message.id": run.Attributes["job.id"], "job.state": "queued",
	})
	require.Equal(t, "succeeded", run.Attributes["job.outcome"])
}
