package languages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// runTracing runs testdata/tracing.mjs with the SDK as it is, or with
// OpenTelemetry's packages where HOLDFAST_NODE_OTEL names a copy that has them.
func runTracing(t *testing.T, sdk, traceparent string, env ...string) (logs []map[string]any) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	c := exec.CommandContext(t.Context(), node, "testdata/tracing.mjs", sdk, traceparent)
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &logs), "%s", out)
	return logs
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func TestNodeHandlersWithoutOpenTelemetryRunAsEver(t *testing.T) {
	if _, err := os.Stat("../../examples/handlers/node/node_modules/@opentelemetry/api"); err == nil {
		t.Skip("OpenTelemetry is installed")
	}
	sdk, err := filepath.Abs("../../examples/handlers/node/holdfast")
	require.NoError(t, err)
	logs := runTracing(t, sdk, "00-"+traceID+"-"+spanID+"-01", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
	require.Equal(t, []map[string]any{{"n": 1.0}}, logs)
}

func TestNodeHandlersWithOpenTelemetrySendSpansBelowTheirAttempt(t *testing.T) {
	sdk := os.Getenv("HOLDFAST_NODE_OTEL")
	if sdk == "" {
		t.Skip("HOLDFAST_NODE_OTEL names no copy of the SDK with OpenTelemetry's packages")
	}
	spans := collector.Start(t)
	logs := runTracing(t, sdk, "00-"+traceID+"-"+spanID+"-01", "OTEL_EXPORTER_OTLP_ENDPOINT="+spans.HTTP)
	sent := spans.Spans()
	require.Len(t, sent, 1)
	require.Equal(t, []string{traceID, spanID, "look it up"}, []string{sent[0].Trace, sent[0].Parent, sent[0].Name})
	require.Equal(t, []map[string]any{{"trace_id": traceID, "span_id": sent[0].ID, "n": 1.0}}, logs)
}

// The packages for Python are stood in for by testdata/otel.
func TestPythonHandlersAreTracedWhereOpenTelemetryIs(t *testing.T) {
	python, err := findPython(t.Context())
	if err != nil {
		t.Skip(err)
	}
	sdk, err := filepath.Abs("../../examples/handlers/python")
	require.NoError(t, err)
	for stand, want := range map[string]string{
		"":                                      `{"n": 1}` + "\n",
		":" + filepath.Join("testdata", "otel"): `{"trace_id": "` + traceID + `", "span_id": "` + spanID + `", "n": 1}` + "\nflushed 500\n",
	} {
		c := exec.CommandContext(t.Context(), python, "testdata/tracing.py", "00-"+traceID+"-"+spanID+"-01")
		c.Env, c.Stderr = append(os.Environ(), "PYTHONPATH="+sdk+stand, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"), os.Stderr
		out, err := c.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}
