package main

import (
	"context"
	"net/http"
	"net/mail"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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

func TestADeliveryHasASpan(t *testing.T) {
	spans := collector.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.HTTP)
	server := startMailServer(t, func(s *mailServer) { s.answers["RCPT bob@example.com"] = "550 no such user" })
	m := mailer{settings: server.settings("none")}
	h := plugintest.Start(t, tracing.Setup(), m.handler())
	for _, to := range []string{"ada@example.com", "bob@example.com"} {
		h.Run(t.Context(), plugintest.Job{
			Payload:     map[string]any{"to": to, "subject": "the subject", "text": "the text"},
			TraceParent: "00-" + traceID + "-" + spanID + "-01",
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, h.Drain(ctx))

	sent := spans.Spans()
	require.Len(t, sent, 2)
	port, err := strconv.ParseInt(m.settings.port, 10, 64)
	require.NoError(t, err)
	want := map[string]any{"network.protocol.name": "smtp", "server.address": "127.0.0.1", "server.port": port}
	for i, failed := range []bool{false, true} {
		span := sent[i]
		require.Equal(t, "smtp send", span.Name)
		require.Equal(t, otlp.Span_SPAN_KIND_CLIENT, span.Kind)
		require.Equal(t, []string{traceID, spanID}, []string{span.Trace, span.Parent})
		require.Equal(t, failed, span.Failed)
		if failed {
			want["error.type"] = "smtp_550"
		}
		require.Equal(t, want, span.Attributes)
	}
	for _, private := range []string{"example.com", "example.org", "subject", "text"} {
		require.NotContains(t, collector.Text(sent), private)
	}
}

// documented returns a row's first two cells, of the table of handlers' attributes.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/telemetry.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| handlers' attribute | of | meaning |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := make(map[string]string)
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(line, "|")
		rows[strings.Trim(cells[1], " `")] = strings.ReplaceAll(strings.TrimSpace(cells[2]), "`", "")
	}
	return rows
}

// TestTheDocumentationListsTheAttributesOfHandlers makes spans of all kinds, and
// compares what is in them with the table, row by row.
func TestTheDocumentationListsTheAttributesOfHandlers(t *testing.T) {
	spans := collector.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.HTTP)
	url := serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := plugintest.Start(t, tracing.Setup(), asking(t, true).handler(), mailer{settings: smtpSettings{host: "127.0.0.1", port: "1", from: mail.Address{Address: "a@b"}}}.handler())
	h.Run(t.Context(), plugintest.Job{Type: "HTTP_REQUEST", Payload: map[string]any{"method": "GET", "url": url}})
	h.Run(t.Context(), plugintest.Job{Type: "SEND_EMAIL", Payload: map[string]any{"to": "a@b", "subject": "s", "text": "t"}})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, h.Drain(ctx))

	names := map[string]string{"GET": "HTTP_REQUEST", "smtp send": "SEND_EMAIL"}
	seen := make(map[string][]string)
	for _, span := range spans.Spans() {
		for key := range span.Attributes {
			seen[key] = append(seen[key], names[span.Name])
		}
	}
	told := make(map[string]string)
	for key, of := range seen {
		slices.Sort(of)
		told[key] = strings.Join(of, ", ")
	}
	require.Equal(t, documented(t), told)
}
