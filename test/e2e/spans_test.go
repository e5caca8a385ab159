package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/jobtrace"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const withItsOwnSpan = `POST /jobs
  send SPAN
    queue wait SPAN
    process SPAN
      the handler's own
`

func TestTheSpansOfAHandlerAreBelowItsAttempt(t *testing.T) {
	t.Parallel()
	s := tracedTo(t, collector.Start(t), "grpc", pgtest.URL(t),
		append(plugin(0, "shop", "testhandlers"), "tracing.plugins=true")...)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "SPAN"})
	rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	s.awaitSpan(t, "the handler's own")
	story := s.story(t, id, 1, "process SPAN")
	require.Equal(t, withItsOwnSpan, collector.Tree(story, ""))

	own, run := collector.Named(story, "the handler's own")[0], jobtrace.Process(t, story, 1)
	require.Equal(t, "shop", own.Resource["service.name"])
	require.NotEqual(t, run.Resource["service.instance.id"], own.Resource["service.instance.id"])
	require.Contains(t, own.Resource, "process.pid")
	require.NotEmpty(t, own.Resource["host.name"])
	require.Equal(t, run.Resource["host.name"], own.Resource["host.name"])

	require.Eventually(t, func() bool { return len(logsOf(t, s.Orchestrator, id).Attempts) == 1 }, patience, glance)
	line := logsOf(t, s.Orchestrator, id).Attempts[0].Lines[0]
	require.Equal(t, map[string]any{"trace_id": own.Trace, "span_id": own.ID}, line.Attributes)
}

func TestTheCollectorGetsTheConfiguredHeaders(t *testing.T) {
	t.Parallel()
	s := traced(t, "http", "tracing.headers=x-key=${COLLECTOR_KEY}")
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	require.Equal(t, jobtrace.AtOnce, collector.Tree(s.story(t, id, 1, "process TRACE"), ""))
	keys := make(map[string]int)
	for _, header := range s.spans.Headers() {
		keys[header.Get("X-Key")]++
	}
	require.Positive(t, keys["s3cret"])
}

func TestIdleWorkHealthLongPollsAndOperatorsViewsMakeNoSpans(t *testing.T) {
	t.Parallel()
	s := traced(t, "grpc", "worker.poll_interval=50ms", "worker.lease=6s", "worker.kill_grace=100ms")
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": 4500}})
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/debug/workers", "/debug/queues", "/debug/jobs/" + id, "/debug/jobs/" + id + "/logs", "/dead-letter",
		"/jobs/" + id + "?wait=20s",
	} {
		require.NoError(t, s.Call(t.Context(), http.MethodGet, path, nil, http.StatusOK, nil))
	}
	s.story(t, id, 1, "process TRACE")
	require.NoError(t, s.ShutDown(t.Context()))
	require.Equal(t, jobtrace.AtOnce, collector.Tree(withoutLookUps(s.spans.Spans()), ""))
}
