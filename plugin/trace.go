package plugin

import (
	"context"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

// TraceContext returns the W3C traceparent and tracestate of the attempt that
// ctx belongs to, for requests that the handler makes without OpenTelemetry. With
// OpenTelemetry you need nothing: the attempt's span is in ctx. Both are empty when
// the job is not traced.
func TraceContext(ctx context.Context) (traceparent, tracestate string) {
	if a := current(ctx); a != nil {
		return a.start.GetTraceparent(), a.start.GetTracestate()
	}
	return "", ""
}

// Baggage returns the W3C baggage that the client sent with the job of the attempt
// that ctx belongs to, byte for byte; empty for none. What of it is valid is in ctx
// too, and OpenTelemetry's propagators pass it on.
func Baggage(ctx context.Context) string {
	if a := current(ctx); a != nil {
		return a.start.GetBaggage()
	}
	return ""
}

// withBaggage leaves out what is not valid.
func withBaggage(ctx context.Context, text string) context.Context {
	if text == "" {
		return ctx
	}
	valid, _ := baggage.Parse(text)
	return baggage.ContextWithBaggage(ctx, valid)
}

// withSpan makes the attempt's span the current one of ctx, so that the spans of
// the handler and of the libraries it uses are below it. It ignores what is not
// a W3C trace context.
//
// OpenTelemetry's own propagator is not used: it would read the headers from a map
// that has to be made for each attempt.
func withSpan(ctx context.Context, traceparent, tracestate string) context.Context {
	if traceparent == "" {
		return ctx
	}
	if parent := readSpan(traceparent, tracestate); parent.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}

// readSpan reads version-trace-span-flags. Versions after 00 may have more fields.
func readSpan(traceparent, tracestate string) trace.SpanContext {
	parts := strings.SplitN(traceparent, "-", 5)
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) > 4 {
		return trace.SpanContext{}
	}
	traceID, badTrace := trace.TraceIDFromHex(parts[1])
	spanID, badSpan := trace.SpanIDFromHex(parts[2])
	flags, badFlags := strconv.ParseUint(parts[3], 16, 8)
	if badTrace != nil || badSpan != nil || badFlags != nil || len(parts[3]) != 2 {
		return trace.SpanContext{}
	}
	state, err := trace.ParseTraceState(tracestate)
	if err != nil { // W3C: drop the state, keep the rest
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags) & trace.FlagsSampled, TraceState: state, Remote: true,
	})
}
