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

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// Config says where spans go.
type Config struct {
	Target
	// Ratio is how many of the traces that begin here are sampled, from 0 to
	// 1. Those that a client has begun are sampled when he says so.
	Ratio float64
	// Worker is the incarnation's id.
	Worker  string
	Version string
	Meter   metric.Meter
	Log     *slog.Logger
}

// Tracing is where the spans of one process go. A nil one has no tracer.
type Tracing struct {
	sender *sender
	tracer trace.Tracer
}

// Start makes a Tracing, or returns nil when there is no target. It does not
// wait for the collector.
func Start(ctx context.Context, c Config) (*Tracing, error) {
	if !c.Target.set() {
		return nil, nil
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		// Jaeger takes a span that begins after its parent's end for one of a clock
		// that is wrong, unless both are of one host.
		resource.WithHost(),
		resource.WithAttributes(
			attribute.String("service.name", "holdfast"),
			attribute.String("service.instance.id", c.Worker),
			attribute.String("service.version", c.Version),
		),
		resource.WithFromEnv(), // what the user says wins
	)
	if errors.Is(err, resource.ErrPartialResource) { // a part that nobody can read costs that part
		c.Log.Warn("a part of what spans tell of the orchestrator cannot be read; see OTEL_RESOURCE_ATTRIBUTES", slog.Any("error", err))
	} else if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	counts, err := newCounts(c.Meter)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	exporter, err := c.Target.exporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	sender := newSender(exporter, counts, c.Log, secretsOf(c.Headers))
	provider := sdk.NewTracerProvider(
		sdk.WithResource(about),
		sdk.WithIDGenerator(spans.IDs{}),
		sdk.WithSampler(sampler{sdk.ParentBased(sdk.TraceIDRatioBased(c.Ratio))}),
		sdk.WithSpanProcessor(sender),
	)
	tracer := provider.Tracer("github.com/holdfast-jobs/holdfast", trace.WithInstrumentationVersion(c.Version))
	return &Tracing{sender: sender, tracer: tracer}, nil
}

// Tracer makes spans; nil for none.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Close sends what has gathered and ends, at the latest when the context does. What
// ends later is counted as dropped: a provider that is shut down would forget it.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.sender.Shutdown(ctx)
}

// sampler also samples traces that begin on behalf of a request which is sampled.
type sampler struct{ sdk.Sampler }

// ShouldSample implements the SDK's Sampler.
func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if spans.Sampled(p.ParentContext) {
		return sdk.AlwaysSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}
