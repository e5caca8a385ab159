package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestStatementsHaveSpansOnlyWithinARecordedSpan(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	tracer := provider.Tracer("")
	s, err := store.Open(t.Context(), store.Config{URL: pgtest.URL(t), MaxConnections: 2, Tracer: tracer})
	require.NoError(t, err)
	t.Cleanup(s.Close)

	_, err = s.Claim(t.Context(), "w", []string{"A"}, 1, time.Second)
	require.NoError(t, err)
	require.Empty(t, exporter.GetSpans(), "the loops have no parent")

	ctx, parent := tracer.Start(t.Context(), "request")
	_, err = s.Get(ctx, job.ID{1})
	require.ErrorIs(t, err, job.ErrNotFound)
	_, err = s.List(ctx, job.Filter{Limit: 1, Tag: "secret"})
	require.NoError(t, err)
	_, err = s.SubmitAll(ctx, []job.Submission{{
		ID: job.ID{2}, Type: "A", Tenant: "t", Payload: []byte(`{"secret": "\u0000`), MaxAttempts: 1, Timeout: time.Second,
	}})
	require.ErrorIs(t, err, job.ErrBadData)
	_, err = s.Hold(ctx, job.ID{1}) // a batch of statements
	require.ErrorIs(t, err, job.ErrNotFound)
	require.True(t, parent.IsRecording(), "the request goes on")
	told := exporter.GetSpans()
	names := make(map[string]tracetest.SpanStub)
	for _, span := range told {
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent.SpanID())
		names[span.Name] = span
	}
	require.Contains(t, names, "postgresql get")
	require.Equal(t, codes.Unset, names["postgresql get"].Status.Code, "not to find it is no error")
	require.Contains(t, names, "postgresql list")
	require.Contains(t, names, "postgresql hold")
	require.Equal(t, codes.Error, names["postgresql submit_unkeyed"].Status.Code)
	for _, span := range told {
		require.NotContains(t, span.Attributes, "secret")
		for _, attribute := range span.Attributes {
			require.NotContains(t, attribute.Value.String(), "secret")
		}
	}
}
