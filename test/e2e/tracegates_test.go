package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/jobtrace"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func passesAGate(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{
		JobType: "TRACE", Payload: map[string]any{}, ConcurrencyKey: "k", ConcurrencyLimit: 1,
	})
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, jobtrace.AtOnce, collector.Tree(story, ""))
	wait := collector.Named(story, "queue wait TRACE")[0]
	require.Contains(t, wait.Attributes, "job.gates")
	require.Contains(t, wait.Attributes, "job.parked")
}

func isEditedAndExpires(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}, Hold: true, TTL: "1s"})
	require.NoError(t, s.Call(t.Context(), http.MethodPatch, "/jobs/"+id, map[string]any{"priority": 7}, http.StatusOK, nil))
	story := s.story(t, id, 1, "expire TRACE")
	require.Equal(t, "POST /jobs\n  send TRACE\n    edit TRACE\n    expire TRACE\n", collector.Tree(story, ""))
	require.Equal(t, "canceled", collector.Named(story, "expire TRACE")[0].Attributes["job.state"])
}

func isKeptOut(t *testing.T, over string) {
	s := traced(t, over)
	submission := rig.Submission{JobType: "TRACE", Payload: map[string]any{}, Hold: true, UniqueWhile: "open"}
	id := rigtest.Submit(t, s.Orchestrator, submission)
	require.Equal(t, id, rigtest.Submit(t, s.Orchestrator, submission))
	s.awaitThat(t, func(all []collector.Span) bool { return len(collector.Named(all, "send TRACE")) == 2 })
	duplicates := 0
	for _, send := range collector.Named(s.spans.Spans(), "send TRACE") {
		require.Equal(t, id, send.Attributes["job.id"])
		if send.Attributes["job.duplicate"] == true {
			duplicates++
		}
	}
	require.Equal(t, 1, duplicates)
}
