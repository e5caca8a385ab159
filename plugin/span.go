package plugin

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// withSpan makes the attempt's span the current one of ctx, so that the spans
// of the handler and of the libraries that it uses are below it. What is no W3C
// trace context changes nothing.
func withSpan(ctx context.Context, traceparent, tracestate string) context.Context {
	if traceparent == "" {
		return ctx
	}
	if parent := readSpan(traceparent, tracestate); parent.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}

// readSpan reads version-trace-span-flags. Later versions may say more after it.
func readSpan(traceparent, tracestate string) trace.SpanContext {
	parts := strings.SplitN(traceparent, "-", 5)
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) > 4 {
		return trace.SpanContext{}
	}
	traceID, badTrace := trace.TraceIDFromHex(parts[1])
	spanID, badSpan := trace.SpanIDFromHex(parts[2])
	flags, badFlags := hexByte(parts[3])
	if badTrace != nil || badSpan != nil || badFlags {
		return trace.SpanContext{}
	}
	state, err := trace.ParseTraceState(tracestate)
	if err != nil { // the standard has it dropped, and the rest kept
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags) & trace.FlagsSampled, TraceState: state, Remote: true,
	})
}

func hexByte(text string) (value byte, bad bool) {
	const digits = "0123456789abcdef"
	if len(text) != 2 {
		return 0, true
	}
	high, low := strings.IndexByte(digits, text[0]), strings.IndexByte(digits, text[1])
	return byte(high<<4 | low), high < 0 || low < 0
}
