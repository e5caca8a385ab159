package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// canary is part of every secret, payload and result. It must appear only where
// somebody asks for them.
const canary = "cAnArY"

// tokens are credentials of clients: a valid one and an invalid one.
const (
	canaryToken = canary + "-of-the-token-0123456789abcdef"
	wrongToken  = canary + "-of-nobody-0123456789abcdef"
)

func TestNoSecretPayloadOrResultIsSeenWhereNobodyAsksForIt(t *testing.T) {
	t.Parallel()
	spans := collector.Start(t)
	database := withPassword(t, pgtest.URL(t), canary)
	s := tracedTo(t, spans, "grpc", database, append(
		plugin(0, "shop", "testhandlers", "SPANS_TO="+spans.GRPC, "SECRET="+canary),
		"database.direct_url="+database, "log.level=debug", "log.jobs=all", "tracing.headers=authorization=${CANARY_HEADER}", "tracing.plugins=true",
		"security.tokens.0.name=bird", "security.tokens.0.token="+canaryToken, `security.tokens.0.scopes=["submit", "read"]`)...)
	s.Header = http.Header{
		"Traceparent": {"00-" + clientTrace + "-" + clientSpan + "-01"}, "Tracestate": {"vendor=" + canary}, "Baggage": {"user=" + canary},
	}
	holding := func(more map[string]any) map[string]any {
		payload := map[string]any{"result": map[string]string{"text": canary}}
		for key, value := range more {
			payload[key] = value
		}
		return payload
	}
	good := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "WORK", Payload: holding(nil), IdempotencyKey: "once"})
	failing := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "WORK", MaxAttempts: 2, Payload: holding(map[string]any{"error": "it fails"})})
	crashing := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "CRASH", MaxAttempts: 1, Payload: holding(nil)})
	for id, status := range map[string]string{good: "COMPLETED", failing: "FAILED", crashing: "FAILED"} {
		rigtest.Await(t, s.Orchestrator, id, status)
	}
	canceled := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "WORK", Payload: holding(map[string]any{"millis": 600_000})})
	rigtest.Await(t, s.Orchestrator, canceled, "RUNNING")
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/"+canceled+"/cancel", nil, http.StatusOK, nil))
	rigtest.Await(t, s.Orchestrator, canceled, "CANCELED")
	traced := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: holding(nil)})
	require.Contains(t, string(rigtest.Await(t, s.Orchestrator, traced, "COMPLETED").Result), "user="+canary, "the handler is given the baggage")

	for name, bad := range map[string]rig.Submission{
		"does not fit the schema": {JobType: "WORK", Payload: map[string]any{"millis": canary}},
		"a key that was used":     {JobType: "WORK", Payload: map[string]any{"error": canary}, IdempotencyKey: "once"},
		"no text for a database":  {JobType: "WORK", Payload: map[string]any{"result": canary + "\x00"}},
	} {
		refused := s.Call(t.Context(), http.MethodPost, "/jobs", bad, http.StatusAccepted, nil)
		if name != "no text for a database" {
			require.Error(t, refused)
		}
		if refused != nil {
			require.NotContains(t, refused.Error(), canary, name)
		}
	}
	for token, status := range map[string]int{canaryToken: http.StatusAccepted, wrongToken: http.StatusUnauthorized} {
		got, answer := withToken(t, s, token)
		require.Equal(t, status, got)
		require.NotContains(t, answer, canary, "in an answer")
	}

	var metrics json.RawMessage
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/metrics", nil, http.StatusOK, &metrics))
	notSeen(t, s, string(metrics), "in the metrics as JSON")
	text := prometheus(t, s.Orchestrator)
	require.Contains(t, text, `job_type="WORK"`)
	notSeen(t, s, text, "in the metrics for Prometheus")

	var detail struct {
		Payload, Result any
	}
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/jobs/"+good, nil, http.StatusOK, &detail))
	require.Equal(t, map[string]any{"text": canary}, detail.Result, "it is seen where it is asked for")

	s.awaitThat(t, func(all []collector.Span) bool { return len(collector.Named(all, "process WORK")) >= 4 })
	require.NoError(t, s.ShutDown(t.Context()))
	state := `trace_state: "vendor=` + canary + `"`
	sent := strings.ReplaceAll(spans.Sent(), "  ", " ")
	require.Contains(t, sent, state, "the client's own word to other tracers goes along")
	notSeen(t, s, strings.ReplaceAll(sent, state, ""), "in spans")

	written := rigtest.Logged(t, s.Orchestrator)
	require.Contains(t, written, `"msg":"attempt ended"`)
	for line := range strings.Lines(written) {
		notSeen(t, s, line, "in the log")
	}
}

func TestAMissingDatabaseIsReportedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"postgres://holdfast:" + canary + "@127.0.0.1:1/holdfast", "postgres://holdfast:" + canary + "@127.0.0.1:port/holdfast",
		"host=127.0.0.1 port=1 user=holdfast password=" + canary,
	} {
		for _, command := range []string{"serve", "migrate up", "doctor"} {
			said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), append(strings.Fields(command),
				"--set", "server.address=127.0.0.1:0", "--set", "database.url="+at, "--set", "database.start_wait=500ms", "--set", "security.user=admin", "--set", "security.password="+canary+"-of-the-operator")...,
			).CombinedOutput()
			require.Error(t, err, "%s: %s", command, said)
			require.Contains(t, string(said), "database", command)
			require.NotContains(t, string(said), canary, command)
		}
	}
}

// notSeen checks that the text contains neither the canary nor the operator's password.
func notSeen(t *testing.T, s *stage, text, where string) {
	t.Helper()
	if at := strings.Index(text, canary); at >= 0 {
		require.Fail(t, "the canary is seen "+where, text[max(0, at-200):min(len(text), at+200)])
	}
	require.False(t, strings.Contains(text, s.Password), "%s: the operator's password", where)
}

// withPassword adds a password to the address. A server that trusts local users does
// not ask for it.
func withPassword(t *testing.T, address, password string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	parsed.User = url.UserPassword(parsed.User.Username(), password)
	return parsed.String()
}

// withToken submits a job as a client that has the token.
func withToken(t *testing.T, s *stage, token string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address+"/jobs",
		strings.NewReader(`{"jobType": "WORK", "payload": {}}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}
