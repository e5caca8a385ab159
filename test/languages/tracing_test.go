package languages

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// nodeWithOpenTelemetry is a project with the packages of OpenTelemetry, of one release.
var nodeWithOpenTelemetry = sync.OnceValues(func() (programs, error) {
	return nodeProject(installs+"/node-otel", "testdata/node-otel/node_modules")
})

// tracedExample is the example's program with OpenTelemetry, and the settings it needs.
// Debian has no such packages for Python, so the test skips without them even where
// everything must be installed.
func tracedExample(t *testing.T, l interpreted) (program string, settings []string) {
	t.Helper()
	if l.name == "node" {
		installed, err := nodeWithOpenTelemetry()
		if err != nil {
			missing(t, err.Error())
		}
		return installed.example, nil
	}
	for _, module := range []string{"sdk.trace", "exporter.otlp.proto.http.trace_exporter", "exporter.otlp.proto.grpc.trace_exporter"} {
		probe := exec.CommandContext(t.Context(), l.interpreter, "-c", "import opentelemetry."+module)
		if said, err := probe.CombinedOutput(); err != nil {
			t.Skipf("not installed for %s: opentelemetry-sdk, opentelemetry-exporter-otlp-proto-http and -grpc: %s", l.interpreter, lastLine(said))
		}
	}
	return l.example, []string{"plugins.0.env.PYTHONPATH=" + os.Getenv("PYTHONPATH")}
}

func lastLine(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return lines[len(lines)-1]
}

func TestTheExamplesSpansAreBelowItsAttempt(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		program, settings := tracedExample(t, l)
		for _, over := range []string{"grpc", "http"} {
			t.Run(over, func(t *testing.T) {
				spans := collector.Start(t)
				endpoint := map[string]string{"grpc": spans.GRPC, "http": spans.HTTP}[over]
				o := orchestrator(t, l, program, pgtest.URL(t), append([]string{
					"tracing.endpoint=" + endpoint, "tracing.protocol=" + over, "tracing.plugins=true", "plugins.0.processes=1",
				}, settings...)...)
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				_, err := o.Start(ctx)
				require.NoError(t, err)
				id := rigtest.Submit(t, o, rig.Submission{JobType: l.prefix + "ECHO", Payload: map[string]any{"text": "a secret"}})
				_, err = o.Await(ctx, id, "COMPLETED")
				require.NoError(t, err)
				// Sent after half a second, not only when the process ends.
				_, err = spans.Await(ctx, func(all []collector.Span) bool { return len(collector.Named(all, "echo")) > 0 })
				require.NoError(t, err)
				last := rigtest.Submit(t, o, rig.Submission{JobType: l.prefix + "ECHO", Payload: map[string]any{"text": "a secret"}})
				_, err = o.Await(ctx, last, "COMPLETED")
				require.NoError(t, err)
				require.NoError(t, o.ShutDown(ctx))

				all := spans.Spans()
				collector.Sound(t, all)
				echoes := collector.Named(all, "echo")
				require.Len(t, echoes, 2, "the last one too, which was sent when the process ended")
				for i, run := range collector.Named(all, "process "+l.prefix+"ECHO") {
					require.Equal(t, []string{run.Trace, run.ID}, []string{echoes[i].Trace, echoes[i].Parent})
					require.Equal(t, "holdfast", run.Resource["service.name"])
					require.Equal(t, "example", echoes[i].Resource["service.name"], "the handler's name")
				}
				require.NotContains(t, spans.Sent(), "a secret")
			})
		}
	})
}

// runTracing runs tracing.mjs.
func runTracing(t *testing.T, install func() (programs, error), endpoint string) (logs []map[string]any) {
	t.Helper()
	installed, err := install()
	if err != nil {
		missing(t, err.Error())
	}
	script := filepath.Join(filepath.Dir(installed.handler), "tracing.mjs")
	c := exec.CommandContext(t.Context(), installed.interpreter, script, "00-"+traceID+"-"+spanID+"-01")
	c.Env, c.Stderr = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint), os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &logs), "%s", out)
	return logs
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func TestNodeHandlersWithoutOpenTelemetryRunUntraced(t *testing.T) {
	logs := runTracing(t, installNode, "http://127.0.0.1:1")
	require.Equal(t, []map[string]any{{"n": 1.0}}, logs)
}

func TestNodeHandlersWithOpenTelemetrySendSpansBelowTheirAttempt(t *testing.T) {
	spans := collector.Start(t)
	logs := runTracing(t, nodeWithOpenTelemetry, spans.HTTP)
	sent := spans.Spans()
	require.Len(t, sent, 1)
	require.Equal(t, []string{traceID, spanID, "look it up"}, []string{sent[0].Trace, sent[0].Parent, sent[0].Name})
	require.Equal(t, []map[string]any{{"trace_id": traceID, "span_id": sent[0].ID, "n": 1.0}}, logs)
}

// testdata/otel stands in for the packages for Python.
func TestPythonHandlersAreTracedIfOpenTelemetryIsInstalled(t *testing.T) {
	installed, err := installPython()
	if err != nil {
		missing(t, err.Error())
	}
	for stand, want := range map[string]string{
		"":                                `{"n": 1}` + "\n",
		filepath.Join("testdata", "otel"): `{"trace_id": "` + traceID + `", "span_id": "` + spanID + `", "n": 1}` + "\nflushed 500\n",
	} {
		c := exec.CommandContext(t.Context(), installed.interpreter, "testdata/tracing.py", "00-"+traceID+"-"+spanID+"-01")
		c.Env, c.Stderr = append(os.Environ(), "PYTHONPATH="+stand, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"), os.Stderr
		out, err := c.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}
