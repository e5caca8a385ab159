package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/storetest"
	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// A stage is an orchestrator that sends its spans to a collector.
type stage struct {
	*rig.Orchestrator
	spans *collector.Collector
	url   string // of the database
}

// traced starts a stage. Its handlers' own spans go to the same collector.
func traced(t *testing.T, settings ...string) *stage {
	t.Helper()
	s := &stage{spans: collector.Start(t), url: storetest.URL(t)}
	settings = append(append(plugin(0, "shop", "testhandlers", "SPANS_TO="+s.spans.HTTP),
		"tracing.endpoint="+s.spans.GRPC, "worker.id=teller"), settings...)
	s.Orchestrator = orchestrator(t, s.url, settings...)
	start(t, s.Orchestrator)
	return s
}

// awaitThat returns once the spans are as wanted.
func (s *stage) awaitThat(t *testing.T, wanted func([]collector.Span) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err := s.spans.Await(ctx, wanted)
	require.NoError(t, err, "%s", collector.Tree(all, ""))
}

func (s *stage) awaitSpan(t *testing.T, name string) {
	t.Helper()
	s.awaitThat(t, func(all []collector.Span) bool { return len(collector.Named(all, name)) > 0 })
}

// story returns the spans of the job's trace once it has so many of the name.
func (s *stage) story(t *testing.T, id string, count int, name string) []collector.Span {
	t.Helper()
	var story []collector.Span
	s.awaitThat(t, func(all []collector.Span) bool {
		story = nil
		for _, span := range all {
			if strings.HasPrefix(span.Name, "send ") && span.Attributes["job.id"] == id {
				story = collector.OfTrace(all, span.Trace)
			}
		}
		return len(collector.Named(story, "POST /jobs")) == 1 && len(collector.Named(story, name)) == count
	})
	for _, span := range s.spans.Spans() {
		for key := range span.Attributes {
			require.Contains(t, known, attribute.Key(key), span.Name)
		}
	}
	return story
}

// known are the attributes that the documentation lists.
var known = slices.Concat(api.SpanAttributes(), store.SpanAttributes(), spans.Attributes())

// process is the one span of the attempt.
func process(t *testing.T, story []collector.Span, attempt int64) collector.Span {
	t.Helper()
	var found []collector.Span
	for _, span := range story {
		if strings.HasPrefix(span.Name, "process ") && span.Attributes["job.attempt"] == attempt {
			found = append(found, span)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

func events(span collector.Span) []string {
	var names []string
	for _, event := range span.Events {
		names = append(names, event.Name)
	}
	return names
}

const succeedsAtOnce = `POST /jobs
  send TRACE
    queue wait TRACE
    process TRACE
      the handler's own
`

func TestTheTraceOfAJobThatSucceeds(t *testing.T) {
	s := traced(t)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"result": "secret payload"}})
	await(t, s.Orchestrator, id, "COMPLETED")
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, succeedsAtOnce, collector.Tree(story, ""))
	collector.Sound(t, story)

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
	run := process(t, story, 1)
	require.Equal(t, otlp.Span_SPAN_KIND_CONSUMER, run.Kind)
	require.Equal(t, wait.End, run.Start)
	require.False(t, run.Failed)
	require.Empty(t, run.Links)
	require.Equal(t, []string{"job.checkpoint"}, events(run))
	require.Subset(t, run.Attributes, map[string]any{
		"messaging.system": "holdfast", "messaging.operation.type": "process", "messaging.operation.name": "process",
		"messaging.destination.name": "TRACE", "messaging.message.id": id, "job.id": id, "job.type": "TRACE",
		"job.attempt": int64(1), "job.max_attempts": int64(4), "job.fence": int64(1), "job.plugin": "shop",
		"job.outcome": "succeeded", "job.state": "succeeded", "job.checkpoints": int64(1),
	})
	require.Contains(t, run.Attributes, "job.plugin.version")
	require.True(t, strings.HasPrefix(run.Attributes["job.worker"].(string), "teller/"), run.Attributes["job.worker"])
	require.Equal(t, "holdfast", run.Resource["service.name"])
	require.Equal(t, run.Attributes["job.worker"], run.Resource["service.instance.id"])
	require.NotContains(t, collector.Text(s.spans.Spans()), "secret payload")

	ended := attempts(t, ledger(t, s.url), id)
	require.Equal(t, run.ID, ended[0].SpanID, "the ledger knows the span")
}

func TestTheTraceOfAJobThatFailsTwice(t *testing.T) {
	s := traced(t, "jobs.default.retry.base=150ms", "jobs.default.retry.jitter_min=1", "jobs.default.retry.jitter_max=1")
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 2}})
	await(t, s.Orchestrator, id, "COMPLETED")
	story := s.story(t, id, 3, "process TRACE")
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
	collector.Sound(t, story)
	for attempt := int64(1); attempt <= 3; attempt++ {
		run := process(t, story, attempt)
		require.Equal(t, attempt, run.Attributes["job.fence"])
		if attempt > 1 {
			before := process(t, story, attempt-1)
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
			require.Contains(t, run.Status, "is to fail")
			require.Equal(t, []string{"job.checkpoint", "exception"}, events(run))
			require.Contains(t, run.Events[1].Attributes["exception.message"], "is to fail")
			require.Subset(t, run.Attributes, map[string]any{
				"job.outcome": "failed", "job.state": "retry", "error.type": "failed", "job.retry.delay": 0.15,
			})
		} else {
			require.False(t, run.Failed)
		}
	}
}

func TestTheTraceOfAnAttemptThatTimesOut(t *testing.T) {
	s := traced(t)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "IGNORE_CANCEL", MaxAttempts: 1})
	await(t, s.Orchestrator, id, "FAILED")
	story := s.story(t, id, 1, "process IGNORE_CANCEL")
	collector.Sound(t, story)
	run := process(t, story, 1)
	require.True(t, run.Failed)
	require.Equal(t, []string{"job.timed_out", "job.killed", "exception"}, events(run))
	require.Subset(t, run.Attributes, map[string]any{"job.outcome": "timeout", "job.state": "dead", "error.type": "timeout"})
	require.GreaterOrEqual(t, run.End.Sub(run.Start), 600*time.Millisecond, "timeout and grace")
}

func TestTheTraceOfAHandlerThatIsKilled(t *testing.T) {
	s := traced(t)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 60_000}, MaxAttempts: 1})
	s.awaitSpan(t, "the handler's own")
	for _, handler := range s.Handlers("testhandlers") {
		require.NoError(t, syscall.Kill(handler.PID, syscall.SIGKILL))
	}
	await(t, s.Orchestrator, id, "FAILED")
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, succeedsAtOnce, collector.Tree(story, ""))
	collector.Sound(t, story)
	run := process(t, story, 1)
	require.True(t, run.Failed)
	require.Subset(t, run.Attributes, map[string]any{"job.outcome": "crashed", "job.crashed": true, "error.type": "crashed"})
}

func TestTheTraceOfAnOrchestratorThatIsKilled(t *testing.T) {
	s := traced(t)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 3_000}})
	s.awaitSpan(t, "the handler's own")
	s.awaitSpan(t, "send TRACE")
	require.NoError(t, s.Kill())
	start(t, s.Orchestrator)
	await(t, s.Orchestrator, id, "COMPLETED")
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
	collector.Sound(t, story)
	runs := collector.Named(story, "process TRACE")
	lost, again := runs[0], runs[1]
	require.True(t, lost.Failed)
	require.Subset(t, lost.Attributes, map[string]any{
		"job.outcome": "interrupted", "job.crashed": true, "job.attempt": int64(1), "job.fence": int64(1), "job.state": "queued",
	})
	require.NotEqual(t, lost.Attributes["job.worker"], lost.Attributes["job.reaped_by"])
	require.Equal(t, again.Attributes["job.worker"], lost.Attributes["job.reaped_by"])
	require.Contains(t, events(lost), "job.lease_expired")
	require.Equal(t, lost.ID, again.Links[0].Span)
	require.False(t, again.Start.Before(lost.End))
}

func TestTheTraceOfAJobThatIsCanceledWhileItRuns(t *testing.T) {
	s := traced(t)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 60_000}})
	s.awaitSpan(t, "the handler's own")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
	await(t, s.Orchestrator, id, "CANCELED")
	story := s.story(t, id, 1, "process TRACE")
	collector.Sound(t, story)
	run := process(t, story, 1)
	require.False(t, run.Failed, "it is what was asked for")
	require.Equal(t, []string{"job.checkpoint", "job.cancel_requested"}, events(run))
	require.Subset(t, run.Attributes, map[string]any{"job.outcome": "canceled", "job.state": "canceled"})
	asked := collector.Named(s.spans.Spans(), "POST /jobs/{id}/cancel")
	require.Len(t, asked, 1)
	require.Equal(t, id, asked[0].Attributes["job.id"])
}

func TestEachJobOfABatchHasATraceOfItsOwn(t *testing.T) {
	s := traced(t)
	one := `{"jobType":"TRACE","payload":{}}`
	for name, batch := range map[string]struct{ path, body, media, within string }{
		"whole": {"/jobs/batch", "[" + one + "," + one + "," + one + "]", "application/json", "  postgresql begin\n  postgresql submit_unkeyed\n  postgresql commit\n"},
		"each":  {"/jobs/batch?atomic=false", "[" + one + "," + one + "," + one + "]", "application/json", ""},
		"lines": {"/jobs/batch?atomic=false", one + "\n" + one + "\n" + one + "\n", "application/x-ndjson", ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := hex.EncodeToString([]byte("the client  " + name)[:16])
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address+batch.path, strings.NewReader(batch.body))
			require.NoError(t, err)
			request.SetBasicAuth("admin", s.Password)
			request.Header.Set("Content-Type", batch.media)
			request.Header.Set("Traceparent", "00-"+client+"-00000000000000aa-01")
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			answer, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Less(t, response.StatusCode, 300, "%s", answer)

			var ofRequest []collector.Span
			var runs []collector.Span
			s.awaitThat(t, func(all []collector.Span) bool {
				runs = nil
				ofRequest = collector.OfTrace(all, client)
				for _, send := range collector.Named(all, "send TRACE") {
					if len(ofRequest) > 0 && len(send.Links) == 1 && send.Links[0].Span == ofRequest[0].ID {
						runs = append(runs, collector.Named(collector.OfTrace(all, send.Trace), "process TRACE")...)
					}
				}
				return len(runs) == 3
			})
			require.Equal(t, "POST /jobs/batch\n"+batch.within, collector.Tree(ofRequest, "00000000000000aa"))
			require.Less(t, ofRequest[0].End.Sub(ofRequest[0].Start), patience)
			traces := make(map[string]bool)
			for _, run := range runs {
				traces[run.Trace] = true
				story := collector.OfTrace(s.spans.Spans(), run.Trace)
				collector.Sound(t, append(story, ofRequest...), "00000000000000aa")
				require.Equal(t, "send TRACE\n  queue wait TRACE\n  process TRACE\n    the handler's own\n", collector.Tree(story, ""))
				require.Equal(t, map[string]any{"job.link": "request"}, story[0].Links[0].Attributes)
			}
			require.Len(t, traces, 3)
		})
	}
}

func TestTheClientsTraceIsJoined(t *testing.T) {
	s := traced(t)
	s.Header = http.Header{
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"vendor=blue"},
		"Baggage": {"customer=ada, order = 7;urgent"},
	}
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	s.Header = nil
	ended := await(t, s.Orchestrator, id, "COMPLETED")
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, succeedsAtOnce, collector.Tree(story, "b7ad6b7169203331"))
	collector.Sound(t, story, "b7ad6b7169203331")
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", story[0].Trace)
	var given struct{ Traceparent, Tracestate, Baggage string }
	require.NoError(t, json.Unmarshal(ended.Result, &given))
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-"+process(t, story, 1).ID+"-01", given.Traceparent)
	require.Equal(t, "vendor=blue", given.Tracestate)
	require.Equal(t, "customer=ada,order = 7;urgent", given.Baggage)
	require.NotContains(t, collector.Text(story), "customer")
}

func TestAParentThatIsNotSampledMakesNoSpans(t *testing.T) {
	s := traced(t)
	unsampled := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	s.Header = http.Header{"Traceparent": {unsampled}, "Tracestate": {"vendor=blue"}}
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 1}})
	ended := await(t, s.Orchestrator, id, "COMPLETED")
	var given struct{ Traceparent, Tracestate, Baggage string }
	require.NoError(t, json.Unmarshal(ended.Result, &given))
	require.Equal(t, unsampled, given.Traceparent)
	require.Equal(t, "vendor=blue", given.Tracestate)
	s.Header = nil
	other := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	s.story(t, other, 1, "process TRACE")
	require.Empty(t, collector.OfTrace(s.spans.Spans(), "0af7651916cd43dd8448eb211c80319c"))
}

func TestARequeuedJobIsLinkedToWhatItWas(t *testing.T) {
	s := traced(t)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 1}, MaxAttempts: 1})
	await(t, s.Orchestrator, id, "FAILED")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/requeue", nil, http.StatusOK, nil))
	story := s.story(t, id, 2, "process TRACE")
	collector.Sound(t, story)
	require.Empty(t, collector.Named(story, "retry wait TRACE"), "it was dead")
	runs := collector.Named(story, "process TRACE")
	require.Equal(t, []collector.Link{{
		Trace: runs[0].Trace, Span: runs[0].ID, Attributes: map[string]any{"job.link": "attempt before the requeue"},
	}}, runs[1].Links)
}

func TestSpansAreSentOverHTTPToo(t *testing.T) {
	spans := collector.Start(t)
	s := &stage{spans: spans}
	t.Setenv("COLLECTOR_KEY", "s3cret")
	s.Orchestrator = orchestrator(t, storetest.URL(t), append(plugin(0, "shop", "testhandlers", "SPANS_TO="+spans.HTTP),
		"tracing.endpoint="+spans.HTTP, "tracing.protocol=http", "tracing.headers=x-key=${COLLECTOR_KEY}")...)
	start(t, s.Orchestrator)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, succeedsAtOnce, collector.Tree(story, ""))
	collector.Sound(t, story)
	keys := make(map[string]int)
	for _, header := range spans.Headers() {
		keys[header.Get("X-Key")]++
	}
	require.Positive(t, keys["s3cret"])
	require.NoError(t, s.ShutDown(t.Context()))
}

func TestNobodyTellsOfIdleWorkHealthAndLongPolls(t *testing.T) {
	s := traced(t, "worker.poll=50ms", "worker.lease=1s", "worker.kill_grace=100ms")
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 1500}})
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/debug/workers", "/jobs/" + id + "?wait=20s"} {
		require.NoError(t, s.Call(t.Context(), http.MethodGet, path, nil, http.StatusOK, nil))
	}
	s.story(t, id, 1, "process TRACE")
	require.NoError(t, s.ShutDown(t.Context()))
	require.Equal(t, succeedsAtOnce, collector.Tree(s.spans.Spans(), ""))
}
