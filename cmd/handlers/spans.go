package main

import (
	"context"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The attributes of the handlers' own spans, by OpenTelemetry's conventions.
// docs/reference/telemetry.md lists them; a test compares the two.
const (
	attrMethod    attribute.Key = "http.request.method"
	attrStatus    attribute.Key = "http.response.status_code"
	attrScheme    attribute.Key = "url.scheme"
	attrServer    attribute.Key = "server.address"
	attrPort      attribute.Key = "server.port"
	attrProtocol  attribute.Key = "network.protocol.name"
	attrErrorType attribute.Key = "error.type"
)

// clientSpan is the span of a request to a server.
type clientSpan struct{ trace.Span }

// beginSpan begins a span below the attempt's. It costs almost nothing if the process
// sends no spans.
func beginSpan(ctx context.Context, name, host, port string, more ...attribute.KeyValue) (context.Context, clientSpan) {
	attributes := append(more, attrServer.String(host))
	if port, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, attrPort.Int(port))
	}
	ctx, span := otel.Tracer("github.com/holdfast-jobs/holdfast/cmd/handlers").Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx, clientSpan{span}
}

// beginRequest begins the span of a request, without the path: those of webhooks are
// secret. It adds the headers of the trace, unless the job sets them. If the process
// sends no spans, the headers have the attempt's span.
func beginRequest(r *http.Request) clientSpan {
	ctx, span := beginSpan(r.Context(), r.Method, r.URL.Hostname(), r.URL.Port(),
		attrMethod.String(r.Method), attrScheme.String(r.URL.Scheme))
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	if r.Header.Get("Traceparent") == "" && r.Header.Get("Tracestate") == "" {
		for name, value := range headers {
			r.Header.Set(name, value)
		}
	}
	return span
}

// beginDelivery begins the span of a letter's delivery, without sender and recipients.
func beginDelivery(ctx context.Context, s smtpSettings) clientSpan {
	_, span := beginSpan(ctx, "smtp send", s.host, s.port, attrProtocol.String("smtp"))
	return span
}

// answered ends the span of a request with an answer.
func (s clientSpan) answered(status int) {
	s.SetAttributes(attrStatus.Int(status))
	if status >= http.StatusBadRequest {
		s.fail(strconv.Itoa(status))
		return
	}
	s.End()
}

// fail ends the span with an error.
func (s clientSpan) fail(kind string) {
	s.SetAttributes(attrErrorType.String(kind))
	s.SetStatus(codes.Error, "")
	s.End()
}
