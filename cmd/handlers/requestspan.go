package main

import (
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// requestSpan is the span of a request, by the semantic conventions of HTTP clients.
// The path is not in it: webhooks have secrets there.
type requestSpan struct{ trace.Span }

// beginSpan tells the server of the span, in headers that those of the job win over;
// of the attempt, where the process sends no spans.
func beginSpan(r *http.Request) requestSpan {
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", r.Method),
		attribute.String("server.address", r.URL.Hostname()),
		attribute.String("url.scheme", r.URL.Scheme),
	}
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		attributes = append(attributes, attribute.Int("server.port", port))
	}
	ctx, span := otel.Tracer("github.com/holdfast-jobs/holdfast/cmd/handlers").Start(r.Context(), r.Method,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	told := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, told)
	if r.Header.Get("Traceparent") == "" && r.Header.Get("Tracestate") == "" {
		for name, value := range told {
			r.Header.Set(name, value)
		}
	}
	return requestSpan{span}
}

// end ends the span of a request that was answered.
func (s requestSpan) end(status int) {
	s.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusBadRequest {
		s.fail(strconv.Itoa(status))
		return
	}
	s.End()
}

// fail ends the span of a request that was not.
func (s requestSpan) fail(kind string) {
	s.SetAttributes(attribute.String("error.type", kind))
	s.SetStatus(codes.Error, "")
	s.End()
}
