package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
)

// What a handler has on standard error is in the orchestrator's log.
func TestNothingSecretIsOnStandardError(t *testing.T) {
	if os.Getenv("HOLDFAST_TEST_CHILD") != "" {
		h := plugintest.Start(t, tracing.Setup(), plugin.Handle("LOOK", func(ctx context.Context, _ plugin.Job[any]) error {
			_, span := otel.Tracer("test").Start(ctx, "look it up")
			span.End()
			return nil
		}))
		h.Run(t.Context(), job())
		drain(t, h)
		return
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // which would outlive the handler
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("no such token: " + r.Header.Get("Authorization") + strings.Repeat("y", 1<<20)))
	}))
	defer refusing.Close()
	for name, c := range map[string]struct{ endpoint, headers, told string }{
		"a header with a colon": {refusing.URL, "Authorization: Bearer s3cret", "OTEL_EXPORTER_OTLP_HEADERS: write name=value"},
		"a colon, and a value with an end like that of base64": {
			refusing.URL, "Authorization: Basic s3cret==", "OTEL_EXPORTER_OTLP_HEADERS: write name=value",
		},
		"a stray escape":                    {refusing.URL, "authorization=Basic s3cret%", "OTEL_EXPORTER_OTLP_HEADERS: write name=value"},
		"a password":                        {"http://user:s3cret@collector:4 318", "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		"an address":                        {"127.0.0.1:4317", "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		"a talkative collector":             {refusing.URL, "authorization=Bearer%20s3cret", "no such token: xxxxx xxxxx"},
		"a secret that begins with another": {refusing.URL, "x-tenant=acme,authorization=acme-s3cret", "no such token: xxxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			out := told(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.endpoint, "OTEL_EXPORTER_OTLP_HEADERS="+c.headers)
			require.Contains(t, out, c.told)
			require.NotContains(t, out, "s3cret")
			require.Less(t, len(out), 10_000)
		})
	}
}

// told is what a process has on standard error whose handler makes a span.
func told(t *testing.T, environment ...string) string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingSecretIsOnStandardError$")
	child.Env = append(append(os.Environ(), "HOLDFAST_TEST_CHILD=1"), environment...)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestAttributesThatCannotBeReadCostOnlyThemselves(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "nonsense")
	h := plugintest.Start(t, tracing.Setup(), plugin.HandleResult("LOOK", func(ctx context.Context, _ plugin.Job[any]) (bool, error) {
		_, span := otel.Tracer("test").Start(ctx, "look it up")
		defer span.End()
		return span.IsRecording(), nil
	}))
	require.JSONEq(t, "true", string(h.Run(t.Context(), job()).Result))
	drain(t, h)
}

// The library reads variables that others win over, and logs what it cannot read.
func TestAVariableThatDoesNotCountIsNotOnStandardError(t *testing.T) {
	if os.Getenv("HOLDFAST_TEST_CHILD") != "" {
		h := plugintest.Start(t, tracing.Setup(), plugin.Handle("LOOK", func(context.Context, plugin.Job[any]) error { return nil }))
		drain(t, h)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "HOLDFAST_TEST_CHILD=1", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=x-token=fine", "OTEL_EXPORTER_OTLP_HEADERS=Authorization: Bearer s3cret")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "s3cret")
}
