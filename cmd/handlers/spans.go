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

// clientSpan is the span of something that is asked of a server.
type clientSpan struct{ trace.Span }

// beginSpan begins a span below the attempt's. It costs next to nothing where the
// process sends no spans.
func beginSpan(ctx context.Context, name, host, port string, more ...attribute.KeyValue) (context.Context, clientSpan) {
	attributes := append(more, attrServer.String(host))
	if port, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, attrPort.Int(port))
	}
	ctx, span := otel.Tracer("github.com/holdfast-jobs/holdfast/cmd/handlers").Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx, clientSpan{span}
}

// beginRequest begins the span of a request. The path is not in it: webhooks have
// secrets there. The server is told of the span, in headers that those of the job
// win over; of the attempt, where the process sends no spans.
func beginRequest(r *http.Request) clientSpan {
	ctx, span := beginSpan(r.Context(), r.Method, r.URL.Hostname(), r.URL.Port(),
		attrMethod.String(r.Method), attrScheme.String(r.URL.Scheme))
	told := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, told)
	if r.Header.Get("Traceparent") == "" && r.Header.Get("Tracestate") == "" {
		for name, value := range told {
			r.Header.Set(name, value)
		}
	}
	return span
}

// beginDelivery begins the span of a letter's delivery. Who writes to whom is not
// in it.
func beginDelivery(ctx context.Context, s smtpSettings) clientSpan {
	_, span := beginSpan(ctx, "smtp send", s.host, s.port, attrProtocol.String("smtp"))
	return span
}

// answered ends the span of a request that was answered.
func (s clientSpan) answered(status int) {
	s.SetAttributes(attrStatus.Int(status))
	if status >= http.StatusBadRequest {
		s.fail(strconv.Itoa(status))
		return
	}
	s.End()
}

// fail ends the span of something that went wrong.
func (s clientSpan) fail(kind string) {
	s.SetAttributes(attrErrorType.String(kind))
	s.SetStatus(codes.Error, "")
	s.End()
}
