package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/storetest"
	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

const withItsOwnSpan = `POST /jobs
  send SPAN
    queue wait SPAN
    process SPAN
      the handler's own
`

func TestTheSpansOfAHandlerAreBelowItsAttempt(t *testing.T) {
	s := &stage{spans: collector.Start(t), url: storetest.URL(t)}
	s.Orchestrator = orchestrator(t, s.url,
		"handlers.0.name=shop", "handlers.0.path="+filepath.Join(bin, "testhandlers"),
		"tracing.endpoint="+s.spans.GRPC, "tracing.handlers=true")
	start(t, s.Orchestrator)
	id := submit(t, s.Orchestrator, rig.Submission{JobType: "SPAN"})
	await(t, s.Orchestrator, id, "COMPLETED")
	s.awaitSpan(t, "the handler's own")
	story := s.story(t, id, 1, "process SPAN")
	require.Equal(t, withItsOwnSpan, collector.Tree(story, ""))
	collector.Sound(t, story)

	own, run := collector.Named(story, "the handler's own")[0], process(t, story, 1)
	require.Equal(t, "shop", own.Resource["service.name"])
	require.NotEqual(t, run.Resource["service.instance.id"], own.Resource["service.instance.id"])
	require.Contains(t, own.Resource, "process.pid")

	require.Eventually(t, func() bool { return len(logsOf(t, s.Orchestrator, id).Attempts) == 1 }, patience, glance)
	line := logsOf(t, s.Orchestrator, id).Attempts[0].Lines[0]
	require.Equal(t, map[string]any{"trace_id": own.Trace, "span_id": own.ID}, line.Attributes)
	require.NoError(t, s.ShutDown(t.Context()))
}
