package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// told is the result of a traced handler: the context it was given.
type told struct {
	Traceparent string `json:"traceparent"`
	Tracestate  string `json:"tracestate"`
	Baggage     string `json:"baggage"`
}

// traced first makes its own span in the context that it was given, and then does what
// the payload says.
func traced(ctx context.Context, j plugin.Job[work]) (told, error) {
	parent, state := plugin.TraceContext(ctx)
	if err := leaveSpan(ctx, parent, state); err != nil {
		return told{}, plugin.Permanent(err)
	}
	for range max(j.Args.Checkpoints, 1) {
		if err := j.Checkpoint(json.RawMessage(`{"at":1}`)); err != nil {
			return told{}, err
		}
	}
	takes := j.Args.Millis
	if j.Fence == 1 && j.Args.FirstMillis > 0 {
		takes = j.Args.FirstMillis
	}
	select {
	case <-time.After(time.Duration(takes) * time.Millisecond):
	case <-ctx.Done():
		return told{}, context.Cause(ctx)
	}
	if j.Args.Panic != "" {
		panic(j.Args.Panic)
	}
	if j.Attempt <= j.Args.FailFirst {
		return told{}, fmt.Errorf("attempt %d is to fail", j.Attempt)
	}
	return told{parent, state, plugin.Baggage(ctx)}, nil
}

// tracer sends each span as soon as it has ended.
var tracer = sync.OnceValues(func() (trace.Tracer, error) {
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpointURL(os.Getenv("SPANS_TO")))
	if err != nil {
		return nil, err
	}
	return sdk.NewTracerProvider(sdk.WithSyncer(exporter)).Tracer("testhandlers"), nil
})

func leaveSpan(ctx context.Context, parent, state string) error {
	t, err := tracer()
	if err != nil || os.Getenv("SPANS_TO") == "" {
		return err
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
	_, span := t.Start(ctx, "the handler's own")
	span.End()
	return nil
}

// spanned makes a span as authors do: with the global tracer, in its context.
func spanned(ctx context.Context, _ plugin.Job[work]) error {
	ctx, span := otel.Tracer("testhandlers").Start(ctx, "the handler's own")
	defer span.End()
	plugin.Logger(ctx).Info("within its span")
	return nil
}
