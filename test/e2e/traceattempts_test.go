package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/jobtrace"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func succeeds(t *testing.T, over string) {
	s := traced(t, over, "tracing.trace_url_template=http://localhost:16686/trace/{trace_id}")
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"result": "secret payload"}})
	rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	story := s.story(t, id, 1, "process TRACE")
	jobtrace.Succeeded(t, story, id, "teller")
	require.NotContains(t, collector.Text(s.spans.Spans()), "secret payload")

	ended := attempts(t, ledger(t, s.url), id)
	run := jobtrace.Process(t, story, 1)
	require.Equal(t, run.ID, ended[0].SpanID, "the ledger knows the span")
	require.Equal(t, whereabouts{run.Trace, "http://localhost:16686/trace/" + run.Trace}, s.whereabouts(t, id))
}

func failsTwice(t *testing.T, over string) {
	s := traced(t, over, jobtrace.FailTwice()...)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 2}})
	rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	jobtrace.FailedTwice(t, s.story(t, id, 3, "process TRACE"))
}

func timesOut(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "IGNORE_CANCEL", MaxAttempts: 1})
	rigtest.Await(t, s.Orchestrator, id, "FAILED")
	jobtrace.TimedOut(t, s.story(t, id, 1, "process IGNORE_CANCEL"))
}

func handlerIsKilled(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 60_000}, MaxAttempts: 1})
	s.awaitSpan(t, "the handler's own")
	for _, handler := range s.Handlers("testhandlers") {
		require.NoError(t, syscall.Kill(handler.PID, syscall.SIGKILL))
	}
	rigtest.Await(t, s.Orchestrator, id, "FAILED")
	jobtrace.Crashed(t, s.story(t, id, 1, "process TRACE"))
}

// leaseRunsOut runs an attempt that is alone in its process, and two that share one.
// The process dies, and the leases run out.
func leaseRunsOut(t *testing.T, over string) {
	s := traced(t, over, "worker.crash_policy=expire")
	for _, outcome := range [][]string{{"crashed"}, {"suspected", "suspected"}} {
		var ids []string
		own := len(collector.Named(s.spans.Spans(), "the handler's own"))
		for range outcome {
			ids = append(ids, rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"firstMillis": 60_000}}))
		}
		s.awaitThat(t, func(all []collector.Span) bool {
			return len(collector.Named(all, "the handler's own")) == own+len(ids)
		})
		for _, handler := range s.Handlers("testhandlers") {
			require.NoError(t, syscall.Kill(handler.PID, syscall.SIGKILL))
		}
		for i, id := range ids {
			rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
			jobtrace.Lapsed(t, s.story(t, id, 2, "process TRACE"), outcome[i])
		}
	}
}

func orchestratorIsKilled(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 3_000}})
	s.awaitSpan(t, "the handler's own")
	s.awaitSpan(t, "POST /jobs")
	s.awaitSpan(t, "queue wait TRACE")
	s.awaitHeartbeat(t)
	require.NoError(t, s.Kill())
	rigtest.Start(t, s.Orchestrator)
	rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	story := s.story(t, id, 2, "process TRACE")
	require.Equal(t, `POST /jobs
  send TRACE
    queue wait TRACE
    process TRACE
      the handler's own
    queue wait TRACE
    process TRACE
      the handler's own
`, collector.Tree(story, ""))
	runs := collector.Named(story, "process TRACE")
	lost, again := runs[0], runs[1]
	require.True(t, lost.Failed)
	require.Subset(t, lost.Attributes, map[string]any{
		"job.outcome": "interrupted", "job.crashed": true, "job.attempt": int64(1), "job.fence": int64(1), "job.state": "queued",
	})
	require.NotEqual(t, lost.Attributes["job.worker"], lost.Attributes["job.reaped_by"])
	require.True(t, strings.HasPrefix(lost.Attributes["job.reaped_by"].(string), maintaining("teller")))
	if !apart {
		require.Equal(t, again.Attributes["job.worker"], lost.Attributes["job.reaped_by"])
	}
	require.Equal(t, []string{"job.last_heartbeat", "job.lease_expired", "exception"}, jobtrace.Events(lost))
	require.Regexp(t, "^attempt 1 of 4: worker .+; queued again$", lost.Status)
	require.NotContains(t, lost.Attributes, "job.plugin", "a reaper does not know it")
	require.Equal(t, []collector.Link{{
		Trace: lost.Trace, Span: lost.ID, Attributes: map[string]any{"job.link": "previous attempt"},
	}}, again.Links)
	require.Subset(t, again.Attributes, map[string]any{"job.attempt": int64(1), "job.fence": int64(2), "job.outcome": "succeeded"})
	require.False(t, again.Start.Before(lost.End))
}

func isCanceled(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 60_000}})
	s.awaitSpan(t, "the handler's own")
	require.Equal(t, "POST /jobs\n  send TRACE\n    queue wait TRACE\n", collector.Tree(s.story(t, id, 1, "queue wait TRACE"), ""),
		"it is seen that the job runs")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
	rigtest.Await(t, s.Orchestrator, id, "CANCELED")
	s.awaitSpan(t, "cancel TRACE")
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, jobtrace.AtOnce+"    cancel TRACE\n", collector.Tree(story, ""))
	run := jobtrace.Process(t, story, 1)
	require.False(t, run.Failed, "it is what was asked for")
	require.Equal(t, []string{"job.cancel_requested"}, jobtrace.LaterEvents(run))
	require.Subset(t, run.Attributes, map[string]any{
		"job.outcome": "canceled", "job.state": "canceled", "job.attempt": int64(1),
	})
	require.NotContains(t, run.Attributes, "error.type")
	asked := s.leadsTo(t, "cancel", story)
	require.Equal(t, id, asked.Attributes["job.id"])
	require.False(t, run.Events[len(run.Events)-1].At.Before(asked.Start), "it was asked to stop when it had been asked for")
	requireDone(t, collector.Named(story, "cancel TRACE")[0], id, "running", asked)
}

// requireDone checks the span of a request in the job's trace, and the state of the job
// afterwards.
func requireDone(t *testing.T, did collector.Span, id, state string, asked collector.Span) {
	t.Helper()
	require.False(t, did.Failed, "it is what was asked for")
	require.Equal(t, map[string]any{"job.id": id, "job.type": "TRACE", "job.tenant": "default", "job.state": state}, did.Attributes)
	require.Equal(t, []collector.Link{{
		Trace: asked.Trace, Span: asked.ID, Attributes: map[string]any{"job.link": "request"},
	}}, did.Links)
	require.False(t, did.Start.Before(asked.Start))
	require.False(t, did.End.After(asked.End))
}

func isRequeuedWithOthers(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 1}, MaxAttempts: 1})
	rigtest.Await(t, s.Orchestrator, id, "FAILED")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/dead-letter/retry", nil, http.StatusOK, nil))
	s.awaitSpan(t, "requeue TRACE")
	story := s.story(t, id, 2, "process TRACE")
	var request collector.Span
	s.awaitThat(t, func(all []collector.Span) bool {
		requests := collector.Named(all, "POST /dead-letter/retry")
		if len(requests) > 0 {
			request = requests[0]
		}
		return len(requests) > 0
	})
	requireDone(t, collector.Named(story, "requeue TRACE")[0], id, "queued", request)
}

func isRequeued(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 1}, MaxAttempts: 1})
	rigtest.Await(t, s.Orchestrator, id, "FAILED")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/requeue", nil, http.StatusOK, nil))
	s.awaitSpan(t, "requeue TRACE")
	story := s.story(t, id, 2, "process TRACE")
	require.Empty(t, collector.Named(story, "retry wait TRACE"), "it was dead")
	requireDone(t, collector.Named(story, "requeue TRACE")[0], id, "queued", s.leadsTo(t, "requeue", story))
	runs := collector.Named(story, "process TRACE")
	require.Equal(t, []collector.Link{{
		Trace: runs[0].Trace, Span: runs[0].ID, Attributes: map[string]any{"job.link": "attempt before the requeue"},
	}}, runs[1].Links)
}

// leadsTo waits for the span of the only such request for a job, and returns it. The
// span links to the job's trace.
func (s *stage) leadsTo(t *testing.T, did string, story []collector.Span) collector.Span {
	t.Helper()
	var requests []collector.Span
	s.awaitThat(t, func(all []collector.Span) bool {
		requests = collector.Named(all, "POST /jobs/{id}/"+did)
		return len(requests) > 0
	})
	require.Len(t, requests, 1)
	send := collector.Named(story, "send TRACE")[0]
	require.Equal(t, []collector.Link{{
		Trace: send.Trace, Span: send.ID, Attributes: map[string]any{"job.link": "job"},
	}}, requests[0].Links)
	return requests[0]
}

func isCanceledWhileItWaits(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}, Hold: true})
	for range 2 { // the second call is no error and ends nothing again
		require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
	}
	story := s.story(t, id, 1, "cancel TRACE")
	require.Equal(t, "POST /jobs\n  send TRACE\n    cancel TRACE\n", collector.Tree(story, ""))
	end := collector.Named(story, "cancel TRACE")[0]
	require.NoError(t, s.ShutDown(t.Context()))
	asked := collector.Named(s.spans.Spans(), "POST /jobs/{id}/cancel")
	require.Len(t, asked, 2)
	requireDone(t, end, id, "canceled", asked[0])
	require.Len(t, collector.Named(s.spans.Spans(), "cancel TRACE"), 1)
}

func isReleased(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}, Hold: true})
	for _, did := range []string{"hold", "release"} {
		require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/"+did, nil, http.StatusOK, nil))
	}
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, jobtrace.AtOnce, collector.Tree(story, ""))
	s.leadsTo(t, "hold", story)
	s.leadsTo(t, "release", story)
}

// isALetter runs what a user sees first: a built-in handler sends its own spans, from
// its own process, to the orchestrator's collector.
func isALetter(t *testing.T, over string) {
	mailbox, err := rig.OpenMailbox(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mailbox.Close()) })
	spans := collector.Start(t)
	s := tracedTo(t, spans, over, pgtest.URL(t),
		append(plugin(0, "mail", "handlers", mailbox.Environment()...), "tracing.plugins=true")...)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "SEND_EMAIL", Payload: map[string]any{
		"to": "Ada <ada@example.com>", "subject": "Hold fast", "text": "to what is good",
	}})
	s.awaitSpan(t, "smtp send")
	story := s.story(t, id, 1, "process SEND_EMAIL")
	require.Equal(t, `POST /jobs
  send SEND_EMAIL
    queue wait SEND_EMAIL
    process SEND_EMAIL
      smtp send
`, collector.Tree(story, ""))
	own := collector.Named(story, "smtp send")[0]
	require.Equal(t, otlp.Span_SPAN_KIND_CLIENT, own.Kind)
	require.Equal(t, "mail", own.Resource["service.name"])
	require.Subset(t, own.Attributes, map[string]any{"network.protocol.name": "smtp", "server.address": "127.0.0.1"})
	for _, private := range []string{"example.com", "Hold fast", "to what is good"} {
		require.NotContains(t, collector.Text(spans.Spans()), private)
	}
}

func panics(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"panic": "out of paper"}, MaxAttempts: 1})
	rigtest.Await(t, s.Orchestrator, id, "FAILED")
	run := jobtrace.Process(t, s.story(t, id, 1, "process TRACE"), 1)
	require.True(t, run.Failed)
	require.Subset(t, run.Attributes, map[string]any{"job.outcome": "failed", "job.error.code": "panic", "error.type": "failed"})
	require.Equal(t, []string{"job.checkpoint", "exception"}, jobtrace.Events(run))
	told := run.Events[1].Attributes
	require.Equal(t, "panic", told["exception.type"])
	require.Contains(t, told["exception.message"], "out of paper")
	require.Contains(t, told["exception.stacktrace"], "trace.go")
}

// orchestratorStops stops the orchestrator while a job runs for longer than the drain
// timeout.
func orchestratorStops(t *testing.T, over string) {
	s := traced(t, over, "worker.drain_timeout=200ms")
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 60_000}})
	s.awaitSpan(t, "the handler's own")
	require.NoError(t, s.ShutDown(t.Context()))
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, jobtrace.AtOnce, collector.Tree(story, ""))
	run := jobtrace.Process(t, story, 1)
	require.False(t, run.Failed, "it stops in good order")
	require.Equal(t, []string{"job.shutdown"}, jobtrace.LaterEvents(run))
	require.Subset(t, run.Attributes, map[string]any{"job.outcome": "given_back", "job.state": "queued"})
}

// maintaining is how the id of the process begins that takes lost attempts over, for an
// orchestrator with the worker.id.
func maintaining(id string) string {
	if apart {
		id += "-" + string(job.RoleMaintenance)
	}
	return id + "/"
}

// leaseIsLost stops a worker, so that it loses a lease. Another worker takes the job
// over and reports the attempt. The first worker reports what it did when it continues.
func leaseIsLost(t *testing.T, over string) {
	first := traced(t, over)
	id := rigtest.Submit(t, first.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"firstMillis": 60_000}})
	first.awaitSpan(t, "the handler's own")
	second := tracedTo(t, first.spans, over, first.url,
		append(plugin(0, "shop", "testhandlers", "SPANS_TO="+first.spans.GRPC), "worker.id=other")...)
	first.awaitHeartbeat(t)
	require.NoError(t, first.Signal(syscall.SIGSTOP))
	awake := func() { require.NoError(t, first.Signal(syscall.SIGCONT)) }
	t.Cleanup(awake)
	rigtest.Await(t, second.Orchestrator, id, "COMPLETED")
	awake()
	first.awaitSpan(t, "lease lost TRACE")
	story := first.story(t, id, 2, "process TRACE")
	runs, late := collector.Named(story, "process TRACE"), collector.Named(story, "lease lost TRACE")[0]
	lost, again := runs[0], runs[1]
	require.Equal(t, "interrupted", lost.Attributes["job.outcome"])
	require.True(t, strings.HasPrefix(lost.Attributes["job.worker"].(string), "teller/"))
	require.True(t, strings.HasPrefix(lost.Attributes["job.reaped_by"].(string), maintaining("other")))
	require.Equal(t, []string{"job.last_heartbeat", "job.lease_expired", "exception"}, jobtrace.Events(lost))
	require.True(t, late.Failed)
	require.Equal(t, "lease_lost", late.Attributes["error.type"])
	require.Equal(t, []collector.Link{{
		Trace: lost.Trace, Span: lost.ID, Attributes: map[string]any{"job.link": "the attempt as the reaper saw it"},
	}}, late.Links)
	require.Equal(t, lost.ID, again.Links[0].Span)
	require.Equal(t, []any{int64(1), int64(2)}, []any{late.Attributes["job.fence"], again.Attributes["job.fence"]})
}

// lossUnproven returns how many leases were lost because they were not renewed in time:
// one or more, since a scrape may take longer than the next claim.
var lossUnproven = regexp.MustCompile(`holdfast_lease_losses_total\{reason="unproven"\} [1-9]`)

// leaseIsNotProven makes the database too slow for a worker to renew a lease. When the
// database answers again, the worker gives the attempt back, unless another worker has
// taken it over.
func leaseIsNotProven(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"firstMillis": 60_000}})
	s.awaitSpan(t, "the handler's own")
	database, err := pgx.Connect(t.Context(), s.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(context.Background())) }()
	busy, err := database.Begin(t.Context())
	require.NoError(t, err)
	_, err = busy.Exec(t.Context(), "lock table leases in access exclusive mode")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return lossUnproven.MatchString(prometheus(t, s.Orchestrator))
	}, patience, glance)
	require.NoError(t, busy.Rollback(t.Context()))
	rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	s.awaitThat(t, func(all []collector.Span) bool {
		return slices.ContainsFunc(collector.Named(all, "process TRACE"), func(run collector.Span) bool {
			return run.Attributes["job.outcome"] == "succeeded"
		})
	})
	counted := prometheus(t, s.Orchestrator)
	require.NoError(t, s.ShutDown(t.Context()))
	var lost []string
	for _, span := range s.spans.Spans() {
		// The next attempt is lost too if its claim has also waited for the table, usually
		// before it begins. Then its wait has no events, but an outcome.
		released := span.Name == "queue wait TRACE" && span.Attributes["job.outcome"] == "given_back"
		if released || slices.Contains(jobtrace.Events(span), "job.lease_lost") {
			lost = append(lost, span.Name)
		}
	}
	require.NotEmpty(t, lost)
	require.Contains(t, counted, fmt.Sprintf(`holdfast_lease_losses_total{reason="unproven"} %d`+"\n", len(lost)))
	require.Subset(t, []string{"process TRACE", "lease lost TRACE", "queue wait TRACE"}, lost)
}
