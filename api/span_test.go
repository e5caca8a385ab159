package api_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestRequestsThatAreAboutJobsHaveSpans(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		given              func(*ledger)
		headers            []string
		span               string // empty for none
		status             int64
		code               codes.Code
	}{
		"submit":         {method: "POST", path: "/jobs", body: minimal, span: "POST /jobs", status: 202},
		"refused":        {method: "POST", path: "/jobs", body: `{}`, span: "POST /jobs", status: 422},
		"unavailable":    {method: "POST", path: "/jobs", body: minimal, given: failing(job.ErrUnavailable), span: "POST /jobs", status: 503, code: codes.Error},
		"broken":         {method: "POST", path: "/jobs", body: minimal, given: func(l *ledger) { l.panics = "secret detail" }, span: "POST /jobs", code: codes.Error},
		"get":            {method: "GET", path: known, given: jobIn(job.Queued), span: "GET /jobs/{id}", status: 200},
		"head":           {method: "HEAD", path: known, given: jobIn(job.Queued), span: "HEAD /jobs/{id}", status: 200},
		"not UTF-8":      {method: "GET", path: "/jobs/%ff", headers: []string{"User-Agent: \xff", "X-Forwarded-For: \xff"}, span: "GET /jobs/{id}", status: 422},
		"list":           {method: "GET", path: "/jobs?tag=secret", span: "GET /jobs", status: 200},
		"lines":          {method: "POST", path: "/jobs/batch?atomic=false", body: minimal, headers: ndjson, span: "POST /jobs/batch", status: 200},
		"requeue many":   {method: "POST", path: "/dead-letter/retry", span: "POST /dead-letter/retry", status: 200},
		"waits":          {method: "GET", path: known + "?wait=1ms", given: jobIn(job.Queued)},
		"alive":          {method: "GET", path: "/healthz"},
		"ready":          {method: "GET", path: "/readyz"},
		"metrics":        {method: "GET", path: "/metrics"},
		"workers":        {method: "GET", path: "/debug/workers"},
		"detail":         {method: "GET", path: inspected, given: busy},
		"logs":           {method: "GET", path: inspected + "/logs", given: busy},
		"dead letters":   {method: "GET", path: "/dead-letter"},
		"types":          {method: "GET", path: "/job-types"},
		"nothing":        {method: "GET", path: "/jobs/a/b/c"},
		"no such method": {method: "PUT", path: "/jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			exporter := tracetest.NewInMemoryExporter()
			provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
			defer func() { require.NoError(t, provider.Shutdown(context.Background())) }()
			l := newLedger()
			if c.given != nil {
				c.given(l)
			}
			routes := api.New(api.Config{
				Jobs: l, Operations: l, Rules: l, Retention: l, Schedules: l, Workflows: l, AllPlugins: l, Log: slog.New(slog.DiscardHandler), Version: "test", Tracer: provider.Tracer(""),
				MaxBodyBytes: 4096, MaxBatchBytes: 64 << 10, RequestTimeout: time.Minute,
			})
			headers := append([]string{"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, c.headers...)
			send(routes, c.method, c.path, c.body, headers...)
			told := exporter.GetSpans()
			if c.span == "" {
				require.Empty(t, told)
				return
			}
			require.Len(t, told, 1)
			require.Equal(t, c.span, told[0].Name)
			require.Equal(t, c.code, told[0].Status.Code)
			require.Equal(t, "b7ad6b7169203331", told[0].Parent.SpanID().String())
			require.True(t, told[0].Parent.IsRemote())
			attributes := make(map[string]any)
			for _, attribute := range told[0].Attributes {
				require.Contains(t, api.SpanAttributes(), attribute.Key)
				require.NotContains(t, attribute.Value.String(), "secret")
				attributes[string(attribute.Key)] = attribute.Value.AsInterface()
			}
			if c.status != 0 {
				require.Equal(t, c.status, attributes["http.response.status_code"])
			}
			require.Equal(t, c.method, attributes["http.request.method"])
		})
	}
}

func TestARequestIsInTheTraceThatItsJobsCarry(t *testing.T) {
	const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	for _, headers := range [][]string{
		{},
		{"traceparent: 00-" + ids + "-01"},
		{"traceparent: 00-" + ids + "-ff"},
		{"traceparent: 00-" + ids + "-01-more"},
		{"traceparent: cc-" + ids + "-01-more"},
		{"traceparent: cc-" + ids + "-01more"},
		{"traceparent: ff-" + ids + "-01"},
		{"traceparent: 00-" + ids + "-01", "traceparent: 00-" + ids + "-01"},
	} {
		exporter := tracetest.NewInMemoryExporter()
		provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
		l := newLedger()
		routes := api.New(api.Config{
			Jobs: l, Operations: l, Rules: l, Retention: l, Schedules: l, Workflows: l, AllPlugins: l, Log: slog.New(slog.DiscardHandler), Version: "test", Tracer: provider.Tracer(""),
			MaxBodyBytes: 4096, MaxBatchBytes: 64 << 10, RequestTimeout: time.Minute,
		})
		require.Equal(t, 202, send(routes, "POST", "/jobs", minimal, headers...).Code)
		told := exporter.GetSpans()
		require.Len(t, told, 1)
		joined := ""
		if parent := told[0].Parent; parent.IsValid() {
			joined = "00-" + parent.TraceID().String() + "-" + parent.SpanID().String() + "-" + parent.TraceFlags().String()
		}
		require.Equal(t, l.submitted[0].Trace.Parent, joined, headers)
		require.NoError(t, provider.Shutdown(t.Context()))
	}
}

func TestTheSpanOfARequestThatChangesAJobLeadsToTheJobsTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	for path, state := range map[string]job.State{
		"cancel": job.Queued, "hold": job.Created, "release": job.Created, "requeue": job.Dead,
	} {
		for carried, links := range map[string]int{parent + "1": 1, parent + "0": 0, "": 0} {
			t.Run(path+" "+carried, func(t *testing.T) {
				exporter := tracetest.NewInMemoryExporter()
				provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
				defer func() { require.NoError(t, provider.Shutdown(context.Background())) }()
				l := newLedger()
				jobIn(state)(l)
				for id, view := range l.jobs {
					view.Trace.Parent = carried
					l.jobs[id] = view
				}
				routes := api.New(api.Config{
					Jobs: l, Operations: l, Rules: l, Retention: l, Schedules: l, Workflows: l, AllPlugins: l, Log: slog.New(slog.DiscardHandler), Version: "test", Tracer: provider.Tracer(""),
					MaxBodyBytes: 4096, MaxBatchBytes: 64 << 10, RequestTimeout: time.Minute,
				})
				require.Equal(t, 200, send(routes, "POST", known+"/"+path, "").Code)
				told := exporter.GetSpans()
				require.Len(t, told, 1)
				require.Len(t, told[0].Links, links)
				for _, link := range told[0].Links {
					require.Equal(t, "b7ad6b7169203331", link.SpanContext.SpanID().String())
					require.Equal(t, "0af7651916cd43dd8448eb211c80319c", link.SpanContext.TraceID().String())
					require.Equal(t, []attribute.KeyValue{attribute.String("job.link", "job")}, link.Attributes)
				}
			})
		}
	}
}
