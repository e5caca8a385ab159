package tracing_test

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
	"github.com/holdfast-jobs/holdfast/test/collector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

// look makes a span, logs within it and in a context without, and returns the headers
// for a request made from within.
func look(ctx context.Context, _ plugin.Job[any]) (map[string]string, error) {
	log := plugin.Logger(ctx)
	ctx, span := otel.Tracer("test").Start(ctx, "look it up")
	defer span.End()
	log.InfoContext(ctx, "within")
	log.Info("without", slog.Int("n", 1))
	headers := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, headers)
	return headers, nil
}

func job() plugintest.Job {
	return plugintest.Job{TraceParent: "00-" + traceID + "-" + spanID + "-01", TraceState: "vendor=blue"}
}

func drain(t *testing.T, h *plugintest.Harness) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	require.NoError(t, h.Drain(ctx))
}

func TestSpansOfHandlersAreSentBelowTheirAttempt(t *testing.T) {
	for protocol, endpoint := range map[string]func(*collector.Collector) string{
		"grpc":          func(c *collector.Collector) string { return c.GRPC },
		"http/protobuf": func(c *collector.Collector) string { return c.HTTP },
	} {
		t.Run(protocol, func(t *testing.T) {
			spans := collector.Start(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint(spans))
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_SERVICE_NAME", "printing")
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000") // so that it is the drain that sends them
			h := plugintest.Start(t, tracing.Setup(), plugin.HandleResult("LOOK", look))
			result := h.Run(t.Context(), job())
			require.Equal(t, plugintest.Succeeded, result.Outcome, "%s", result)
			drain(t, h)

			sent := spans.Spans()
			require.Len(t, sent, 1)
			require.Equal(t, "look it up", sent[0].Name)
			require.Equal(t, traceID, sent[0].Trace)
			require.Equal(t, spanID, sent[0].Parent)
			require.Equal(t, "printing", sent[0].Resource["service.name"])
			require.JSONEq(t, `{"traceparent":"00-`+traceID+`-`+sent[0].ID+`-01","tracestate":"vendor=blue"}`, string(result.Result))
			require.Len(t, result.Logs, 2)
			require.Equal(t, map[string]any{"trace_id": traceID, "span_id": sent[0].ID}, result.Logs[0].Attributes)
			require.Equal(t, map[string]any{"trace_id": traceID, "span_id": spanID, "n": 1.0}, result.Logs[1].Attributes)
		})
	}
}

func TestTheSchemeSaysWhetherThereIsTLS(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	for protocol, endpoint := range map[string]func(*collector.Collector) string{
		"grpc":          func(c *collector.Collector) string { return c.GRPC },
		"http/protobuf": func(c *collector.Collector) string { return c.HTTP },
	} {
		for name, c := range map[string]struct {
			scheme, variable, value string
			want                    int
		}{
			"https, though insecure":    {"https:", "OTEL_EXPORTER_OTLP_INSECURE", "true", 0},
			"http, though not insecure": {"http:", "OTEL_EXPORTER_OTLP_INSECURE", "false", 1},
			"http, though certificates": {"http:", "OTEL_EXPORTER_OTLP_CERTIFICATE", certificate, 1},
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				spans := collector.Start(t) // which has no TLS
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(endpoint(spans), "http:", c.scheme, 1))
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
				t.Setenv(c.variable, c.value)
				h := plugintest.Start(t, tracing.Setup(), plugin.HandleResult("LOOK", look))
				h.Run(t.Context(), job())
				drain(t, h)
				require.Len(t, spans.Spans(), c.want)
			})
		}
	}
}

func TestWhatIsNotSampledIsNotSent(t *testing.T) {
	spans := collector.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", spans.HTTP+"/v1/traces")
	h := plugintest.Start(t, tracing.Setup(), plugin.HandleResult("LOOK", look))
	h.Run(t.Context(), plugintest.Job{TraceParent: "00-" + traceID + "-" + spanID + "-00"})
	drain(t, h)
	require.Empty(t, spans.Spans())
}

func TestADeadCollectorHoldsUpNoHandlerAndNoDrainForLong(t *testing.T) {
	hole, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections, and says nothing
	require.NoError(t, err)
	defer hole.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+hole.Addr().String())
	h := plugintest.Start(t, tracing.Setup(), plugin.Handle("LOOK", func(ctx context.Context, _ plugin.Job[any]) error {
		for range 10_000 { // more than may wait
			_, span := otel.Tracer("test").Start(ctx, "look it up")
			span.End()
		}
		return nil
	}))
	require.Equal(t, plugintest.Succeeded, h.Run(t.Context(), job()).Outcome)
	began := time.Now()
	drain(t, h)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestWithoutACollectorTheContextIsHandedOn(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"no endpoint":         {},
		"disabled":            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter":         {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
		"an unknown protocol": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range variables {
				t.Setenv(variable, value)
			}
			h := plugintest.Start(t, tracing.Setup(), plugin.Handle("LOOK", func(ctx context.Context, _ plugin.Job[any]) error {
				headers := propagation.MapCarrier{}
				otel.GetTextMapPropagator().Inject(ctx, headers)
				plugin.Logger(ctx).Info("given", "traceparent", headers["traceparent"])
				return nil
			}))
			result := h.Run(t.Context(), job())
			require.Equal(t, job().TraceParent, result.Logs[0].Attributes["traceparent"])
			drain(t, h)
		})
	}
}
