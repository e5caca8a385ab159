package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// canary is in all that must be seen nowhere but where it is asked for.
const canary = "cAnArY"

func TestNoSecretPayloadOrResultIsSeenWhereNobodyAsksForIt(t *testing.T) {
	const password = "cAnArY-of-the-token-0123456789abcdef"
	s := traced(t, "grpc", "log.level=debug", "log.jobs=all", "log.format=json", "tracing.headers=authorization="+canary,
		"handlers.0.env.SECRET="+canary, "security.tokens.0.name=canary", "security.tokens.0.token="+password,
		"security.tokens.0.scopes="+`["submit"]`)
	holding := func(more map[string]any) map[string]any {
		payload := map[string]any{"result": map[string]string{"text": canary}}
		for key, value := range more {
			payload[key] = value
		}
		return payload
	}
	good := submit(t, s.Orchestrator, rig.Submission{JobType: "WORK", Payload: holding(nil)})
	failing := submit(t, s.Orchestrator, rig.Submission{JobType: "WORK", MaxAttempts: 2, Payload: holding(map[string]any{"error": "it fails"})})
	crashing := submit(t, s.Orchestrator, rig.Submission{JobType: "CRASH", MaxAttempts: 1, Payload: holding(nil)})
	for id, status := range map[string]string{good: "COMPLETED", failing: "FAILED", crashing: "FAILED"} {
		await(t, s.Orchestrator, id, status)
	}
	canceled := submit(t, s.Orchestrator, rig.Submission{JobType: "WORK", Payload: holding(map[string]any{"millis": 600_000})})
	await(t, s.Orchestrator, canceled, "RUNNING")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+canceled+"/cancel", nil, http.StatusOK, nil))
	await(t, s.Orchestrator, canceled, "CANCELED")

	bad := rig.Submission{JobType: "WORK", Payload: map[string]any{"millis": canary}}
	refused := s.Call(t.Context(), http.MethodPost, "/jobs", bad, http.StatusAccepted, nil)
	require.Error(t, refused)
	require.NotContains(t, refused.Error(), canary, "what the API says of bad input")

	var metrics json.RawMessage
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/metrics", nil, http.StatusOK, &metrics))
	require.NotContains(t, string(metrics), canary)

	var detail struct {
		Payload, Result any
	}
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/jobs/"+good, nil, http.StatusOK, &detail))
	require.Equal(t, map[string]any{"text": canary}, detail.Result, "it is seen where it is asked for")

	s.awaitThat(t, func(all []collector.Span) bool { return len(collector.Named(all, "process WORK")) >= 4 })
	require.NoError(t, s.ShutDown(t.Context()))
	require.NotContains(t, collector.Text(s.spans.Spans()), canary, "in spans")

	written, err := os.ReadFile(s.Log().(*os.File).Name())
	require.NoError(t, err)
	require.Contains(t, string(written), `"msg":"attempt ended"`)
	for line := range bytes.Lines(written) {
		require.NotContains(t, string(line), canary, "in the log")
		require.False(t, strings.Contains(string(line), s.Password), "in the log: the operator's password")
	}
}
