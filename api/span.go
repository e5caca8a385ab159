package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The attributes of a request's span, by OpenTelemetry's conventions for HTTP.
// What the client may choose freely, such as the path, is not among them.
const (
	attrMethod    attribute.Key = "http.request.method"
	attrRoute     attribute.Key = "http.route"
	attrStatus    attribute.Key = "http.response.status_code"
	attrClient    attribute.Key = "client.address"
	attrErrorType attribute.Key = "error.type"
	attrJob       attribute.Key = "job.id"
	attrLink      attribute.Key = "job.link"
)

// linkJob is what the attribute job.link says of a link to the job's own trace.
const linkJob = "job"

// SpanAttributes lists the attributes of a request's span, and of its links.
func SpanAttributes() []attribute.Key {
	return []attribute.Key{attrMethod, attrRoute, attrStatus, attrClient, attrErrorType, attrJob, attrLink}
}

// traced makes a span of each request that submits, changes or looks up jobs, in the
// trace of the client. One that waits for a job to end has none: it would tell
// of nothing but the wait.
func traced(tracer trace.Tracer) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if tracer == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route := chi.RouteContext(r.Context()).RoutePattern()
			if !aboutJobs(r.Method, route) || r.URL.Query().Has("wait") {
				next.ServeHTTP(w, r)
				return
			}
			ctx := trace.ContextWithRemoteSpanContext(r.Context(), remote(contextOf(r.Header)))
			ctx, span := tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer))
			r = r.WithContext(ctx)
			if !span.IsRecording() {
				next.ServeHTTP(w, r)
				return
			}
			span.SetAttributes(attrMethod.String(r.Method), attrRoute.String(route),
				attrClient.String(middleware.GetClientIP(ctx)))
			if id, err := job.ParseID(chi.URLParam(r, "id")); err == nil {
				span.SetAttributes(attrJob.String(id.String()))
			}
			answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			answered := false
			defer func() {
				if !answered { // it panics, and observe answers
					span.SetStatus(codes.Error, "the answer was broken off")
				}
				endSpan(ctx, answer.Status())
			}()
			next.ServeHTTP(answer, r)
			answered = true
		})
	}
}

// aboutJobs tells requests that have spans from those of monitoring and from
// operators' views: who looks into a job must not find traces of looking.
func aboutJobs(method, route string) bool {
	if route == "/jobs" || strings.HasPrefix(route, "/jobs/") {
		return true
	}
	return method == http.MethodPost && strings.HasPrefix(route, "/dead-letter/")
}

// linkToJob has the span of the request lead to the trace of the job that it has
// changed, where both are sampled.
func linkToJob(ctx context.Context, carried job.Trace) {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return
	}
	if of := remote(carried); of.IsSampled() {
		request.AddLink(trace.Link{SpanContext: of, Attributes: []attribute.KeyValue{attrLink.String(linkJob)}})
	}
}

// endSpan ends the span of the request, if there is one, with the status of the
// answer; 0 for none. Nothing is told of what follows.
func endSpan(ctx context.Context, status int) {
	span := trace.SpanFromContext(ctx)
	if status != 0 {
		span.SetAttributes(attrStatus.Int(status))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
		span.SetAttributes(attrErrorType.String(strconv.Itoa(status)))
	}
	span.End()
}
