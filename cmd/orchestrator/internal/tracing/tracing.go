// Package tracing sends the spans of an orchestrator to a collector, by OTLP.
//
// A collector that does not answer, or not fast enough, costs spans, which are
// counted, and nothing else: neither time nor memory without a bound.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// Config says where spans go.
type Config struct {
	Target
	// Ratio is the share of the traces begun here that is sampled, from 0 to 1. A trace
	// that a client has begun is sampled if the client says so.
	Ratio float64
	// Worker is the worker's id.
	Worker  string
	Version string
	// Cell is the cell of the database, if any: then every span has the attribute
	// holdfast.cell, of its resource.
	Cell  job.Cell
	Meter metric.Meter
	Log   *slog.Logger
}

// Tracing is where the spans of one process go. A nil one has no tracer.
type Tracing struct {
	sender  *sender
	tracer  trace.Tracer
	sampler sdk.Sampler
}

// Start returns a Tracing, or nil if there is no target. It does not wait for the
// collector.
func Start(ctx context.Context, c Config) (*Tracing, error) {
	if !c.Target.set() {
		return nil, nil
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		// If two spans are not from one host and the child begins after its parent's
		// end, Jaeger assumes that a clock is wrong and moves the child.
		resource.WithHost(),
		resource.WithAttributes(identity(c)...),
		resource.WithFromEnv(), // last, so that it wins
	)
	if errors.Is(err, resource.ErrPartialResource) { // only that part is lost
		c.Log.Warn("some attributes of the orchestrator cannot be read and are missing from spans; see OTEL_RESOURCE_ATTRIBUTES", slog.Any("error", err))
	} else if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	counts, err := newCounts(c.Meter)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	client, err := c.Target.client()
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	t := &Tracing{sampler: sdk.TraceIDRatioBased(c.Ratio)}
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithSampler(sdk.ParentBased(t.sampler)))
	t.tracer = provider.Tracer("github.com/holdfast-jobs/holdfast", trace.WithInstrumentationVersion(c.Version))
	to, err := newUploader(ctx, client, anySpan(ctx, t.tracer))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	t.sender = newSender(to, counts, c.Log, otlp.SecretsOf(maps.Values(c.Headers)))
	provider.RegisterSpanProcessor(t.sender)
	return t, nil
}

// identity is who makes the spans.
func identity(c Config) []attribute.KeyValue {
	who := []attribute.KeyValue{
		attribute.String("service.name", "holdfast"),
		attribute.String("service.instance.id", c.Worker),
		attribute.String("service.version", c.Version),
	}
	if number, some := c.Cell.Number(); some {
		who = append(who, attribute.Int("holdfast.cell", int(number)))
	}
	return who
}

// anySpan is a span of the tracer, which has no processor yet.
func anySpan(ctx context.Context, tracer trace.Tracer) sdk.ReadOnlySpan {
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})
	_, span := tracer.Start(trace.ContextWithSpanContext(ctx, sampled), "")
	return span.(sdk.ReadOnlySpan)
}

// Tracer makes spans; nil for none.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Exporter takes the spans of jobs; nil for none.
func (t *Tracing) Exporter() spans.Exporter {
	if t == nil {
		return nil
	}
	return t
}

// Export implements spans.Exporter.
func (t *Tracing) Export(span []byte) { t.sender.Export(span) }

// Sampled implements spans.Exporter.
func (t *Tracing) Sampled(id trace.TraceID) bool {
	return t.sampler.ShouldSample(sdk.SamplingParameters{TraceID: id}).Decision == sdk.RecordAndSample
}

// Close sends the spans that wait, and returns at the latest when the context ends. Spans
// that end afterwards are counted as dropped; a provider that is shut down would not
// count them.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.sender.Shutdown(ctx)
}
