package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
	"github.com/holdfast-jobs/holdfast/test/collector"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func TestARequestCarriesTheContextOfTheAttempt(t *testing.T) {
	var got http.Header
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	h := plugintest.Start(t, asking(t, true).handler())
	job := plugintest.Job{
		Payload: map[string]any{"method": "GET", "url": url}, TraceParent: "00-" + traceID + "-" + spanID + "-01", TraceState: "vendor=blue",
	}
	require.Equal(t, plugintest.Succeeded, h.Run(t.Context(), job).Outcome)
	require.Equal(t, job.TraceParent, got.Get("Traceparent"))
	require.Equal(t, "vendor=blue", got.Get("Tracestate"))

	own := map[string]string{"traceparent": "00-11111111111111111111111111111111-2222222222222222-01"}
	job.Payload = map[string]any{"method": "GET", "url": url, "headers": own}
	require.Equal(t, plugintest.Succeeded, h.Run(t.Context(), job).Outcome)
	require.Equal(t, own["traceparent"], got.Get("Traceparent"))
	require.Empty(t, got.Get("Tracestate"), "it belongs to another trace")
}

func TestARequestHasASpan(t *testing.T) {
	spans := collector.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.HTTP)
	var got http.Header
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	h := plugintest.Start(t, tracing.Setup(), asking(t, true).handler())
	h.Run(t.Context(), plugintest.Job{
		Payload: map[string]any{"method": "post", "url": url + "/s3cret"}, TraceParent: "00-" + traceID + "-" + spanID + "-01",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, h.Drain(ctx))

	sent := spans.Spans()
	require.Len(t, sent, 1)
	span := sent[0]
	require.Equal(t, "POST", span.Name)
	require.Equal(t, otlp.Span_SPAN_KIND_CLIENT, span.Kind)
	require.Equal(t, []string{traceID, spanID}, []string{span.Trace, span.Parent})
	require.True(t, span.Failed)
	require.Subset(t, span.Attributes, map[string]any{
		"http.request.method": "POST", "server.address": "127.0.0.1", "http.response.status_code": int64(503), "error.type": "503",
	})
	require.Equal(t, "00-"+traceID+"-"+span.ID+"-01", got.Get("Traceparent"), "the server is told of the request's span")
	require.NotContains(t, collector.Text(sent), "s3cret")
}
