package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/blackhole"
	"github.com/holdfast-jobs/holdfast/test/collector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin starts tracing to the target. How many spans were sent and dropped is
// returned by counted.
func begin(t *testing.T, target Target, ratio float64) (traces *Tracing, counted func() map[string]int64) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	traces, err := Start(t.Context(), Config{
		Target: target, Ratio: ratio, Worker: "test/1", Version: "v1",
		Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return traces, func() map[string]int64 {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(context.Background(), &all))
		counts := make(map[string]int64)
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
					reason, _ := point.Attributes.Value("reason")
					counts[m.Name+" "+reason.AsString()] += point.Value
				}
			}
		}
		return counts
	}
}

func end(t *testing.T, traces *Tracing, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return traces.Close(ctx)
}

func TestSpansReachACollector(t *testing.T) {
	spans := collector.Start(t)
	for _, target := range []Target{
		{Endpoint: spans.GRPC, Protocol: GRPC}, {Endpoint: spans.HTTP, Protocol: HTTP}, {Endpoint: spans.HTTP + "/v1/traces", Protocol: HTTP},
	} {
		traces, counted := begin(t, target, 1)
		before := len(spans.Spans())
		const n = 3 * sendSpans / 2
		for range n {
			_, span := traces.Tracer().Start(t.Context(), "one")
			span.End()
		}
		require.NoError(t, end(t, traces, time.Minute))
		require.Len(t, spans.Spans(), before+n)
		require.Equal(t, map[string]int64{
			"holdfast.spans.sent ": n, "holdfast.spans.dropped queue_full": 0, "holdfast.spans.dropped not_sent": 0,
		}, counted())
	}
	last := spans.Spans()[0]
	require.Equal(t, "holdfast", last.Resource["service.name"])
	require.Equal(t, "test/1", last.Resource["service.instance.id"])
	require.Equal(t, "v1", last.Resource["service.version"])
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, last.Resource["host.name"])
}

func TestSpansOfACellNameIt(t *testing.T) {
	spans := collector.Start(t)
	for _, c := range []struct {
		cell job.Cell
		want any
	}{{job.Cell{}, nil}, {job.CellOf(0), int64(0)}, {job.CellOf(3), int64(3)}} {
		traces, err := Start(t.Context(), Config{
			Target: Target{Endpoint: spans.HTTP, Protocol: HTTP}, Ratio: 1, Cell: c.cell,
			Meter: sdkmetric.NewMeterProvider().Meter("test"), Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		_, span := traces.Tracer().Start(t.Context(), "one")
		span.End()
		require.NoError(t, end(t, traces, time.Minute))
		all := spans.Spans()
		require.Equal(t, c.want, all[len(all)-1].Resource["holdfast.cell"])
	}
}

func TestNobodyWaitsForACollectorThatIsGone(t *testing.T) {
	for name, endpoint := range map[string]string{"never answers": "http://" + blackhole.Listen(t), "nobody listens": "http://127.0.0.1:1"} {
		for _, protocol := range []string{GRPC, HTTP} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				traces, counted := begin(t, Target{Endpoint: endpoint, Protocol: protocol}, 1)
				const n = 3 * queueSpans
				began := time.Now()
				for range n {
					_, span := traces.Tracer().Start(t.Context(), "one")
					span.End()
				}
				require.Less(t, time.Since(began), time.Minute, "whoever ends a span does not wait")
				counts := counted()
				require.GreaterOrEqual(t, counts["holdfast.spans.dropped queue_full"]+counts["holdfast.spans.dropped not_sent"],
					int64(n-queueSpans-2*sendSpans))
				began = time.Now()
				_ = end(t, traces, 300*time.Millisecond)
				require.Less(t, time.Since(began), 5*time.Second)
				counts = counted()
				require.Zero(t, counts["holdfast.spans.sent "])
				require.Equal(t, int64(n), counts["holdfast.spans.dropped queue_full"]+counts["holdfast.spans.dropped not_sent"], "all are counted")
				_, span := traces.Tracer().Start(t.Context(), "too late")
				span.End()
			})
		}
	}
}

func TestACollectorsAnswerIsLoggedWithoutSecrets(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer refusing.Close()
	for _, at := range []string{"127.0.0.1:1", strings.TrimPrefix(refusing.URL, "http://")} {
		for _, protocol := range []string{GRPC, HTTP} {
			var log bytes.Buffer
			traces, err := Start(t.Context(), Config{
				Target: Target{
					Endpoint: "http://" + at, Protocol: protocol, Headers: map[string]string{"authorization": "s3cret"},
				},
				Ratio: 1, Meter: noop.Meter{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			require.NoError(t, err)
			_, span := traces.Tracer().Start(t.Context(), "one")
			span.End()
			if err := end(t, traces, time.Second); err != nil {
				require.NotContains(t, err.Error(), "s3cret")
			}
			require.Contains(t, log.String(), "spans could not be sent", protocol)
			require.NotContains(t, log.String(), "s3cret", protocol)
		}
	}
}

func TestTheSamplerFollowsTheParentOrElseTheRatio(t *testing.T) {
	traces, _ := begin(t, Target{Endpoint: "http://127.0.0.1:1", Protocol: HTTP}, 0.25)
	defer func() { _ = end(t, traces, time.Millisecond) }()
	sampled := 0
	for range 4000 {
		_, span := traces.Tracer().Start(t.Context(), "root")
		if span.SpanContext().IsSampled() {
			sampled++
		}
	}
	require.InDelta(t, 1000, sampled, 200)
	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: flags, Remote: true})
		_, span := traces.Tracer().Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "child")
		require.Equal(t, flags.IsSampled(), span.SpanContext().IsSampled())
	}
}

func TestWithoutACollectorThereIsNoTracer(t *testing.T) {
	traces, err := Start(t.Context(), Config{Meter: noop.Meter{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.Nil(t, traces.Tracer())
	require.NoError(t, traces.Close(t.Context()))
}
