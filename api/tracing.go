package api

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The attributes of a request's span, by OpenTelemetry's conventions for HTTP. They
// include nothing that the client can choose freely, such as the path.
const (
	attrMethod    attribute.Key = "http.request.method"
	attrRoute     attribute.Key = "http.route"
	attrStatus    attribute.Key = "http.response.status_code"
	attrClient    attribute.Key = "client.address"
	attrErrorType attribute.Key = "error.type"
	attrJob       attribute.Key = "job.id"
	attrLink      attribute.Key = "job.link"
)

// linkJob is the value of job.link for a link to the job's own trace.
const linkJob = "job"

// SpanAttributes lists the attributes of a request's span, and of its links.
func SpanAttributes() []attribute.Key {
	return []attribute.Key{attrMethod, attrRoute, attrStatus, attrClient, attrErrorType, attrJob, attrLink}
}

// traced makes a span for each request that submits, changes or looks up jobs, in the
// trace of the client. A request that waits for a job to end has no span, which would
// show nothing but the wait.
func traced(tracer trace.Tracer) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if tracer == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route := chi.RouteContext(r.Context()).RoutePattern()
			if !aboutJobs(r.Method, route) || r.URL.RawQuery != "" && r.URL.Query().Has("wait") {
				next.ServeHTTP(w, r)
				return
			}
			ctx := r.Context()
			if of := spanContextOf(contextOf(r.Header)); of.IsValid() {
				ctx = trace.ContextWithRemoteSpanContext(ctx, of)
			}
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
				if !answered { // It panics, and observe answers.
					span.SetStatus(codes.Error, "the answer was broken off")
				}
				endSpan(ctx, answer.Status())
			}()
			next.ServeHTTP(answer, r)
			answered = true
		})
	}
}

// aboutJobs reports whether a request gets a span. Requests of monitoring and of
// operators get none: looking at a job must not leave traces.
func aboutJobs(method, route string) bool {
	if route == "/jobs" || strings.HasPrefix(route, "/jobs/") {
		return true
	}
	return method == http.MethodPost && strings.HasPrefix(route, "/dead-letter/")
}

// linkToJob links the span of the request to the trace of the job that it has
// changed, if both are sampled.
func linkToJob(ctx context.Context, carried job.Trace) {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return
	}
	if of := spanContextOf(carried); of.IsSampled() {
		request.AddLink(trace.Link{SpanContext: of, Attributes: []attribute.KeyValue{attrLink.String(linkJob)}})
	}
}

// endSpan ends the span of the request, if there is one, with the status of the
// answer; 0 for none. The span records nothing that follows.
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

const (
	// parentBytes is the length of a traceparent of version 00.
	parentBytes     = 55
	maxStateBytes   = 512
	maxBaggageBytes = 1024
)

// baggageMember is name=value, perhaps with properties, in printable ASCII.
var baggageMember = regexp.MustCompile(`^[\x21-\x7e]+ *= *[\x20-\x7e]*$`)

// traceOf returns the trace context of the request and its baggage.
func traceOf(header http.Header) job.Trace {
	carried := contextOf(header)
	carried.Baggage = baggageOf(header)
	return carried
}

// contextOf returns the trace context of the request, reduced to version 00. As the
// standard demands, it ignores a malformed one.
func contextOf(header http.Header) job.Trace {
	sent := header.Values("traceparent")
	if len(sent) != 1 {
		return job.Trace{}
	}
	parent := strings.TrimSpace(sent[0])
	if strings.HasPrefix(parent, "00-") {
		if len(parent) != parentBytes {
			return job.Trace{}
		}
		// The standard ignores reserved flags. The library refuses them, but only in version 00.
		parent = "01" + parent[2:]
	}
	state := strings.Join(header.Values("tracestate"), ",")
	if len(state) > maxStateBytes {
		state = ""
	}
	reduced := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(
		trace.ContextWithSpanContext(context.Background(), spanContextOf(job.Trace{Parent: parent, State: state})), reduced)
	return job.Trace{Parent: reduced["traceparent"], State: reduced["tracestate"]}
}

// spanContextOf is the span that a job carries; an invalid one for none.
func spanContextOf(carried job.Trace) trace.SpanContext {
	if carried.Parent == "" { // as mostly; the library would make a context and a map for it
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": carried.Parent, "tracestate": carried.State}))
}

// baggageOf returns the first members of the baggage, as many as fit. Malformed ones
// are left out.
func baggageOf(header http.Header) string {
	var kept []string
	size := 0
	for _, line := range header.Values("baggage") {
		for member := range strings.SplitSeq(line, ",") {
			member = strings.TrimSpace(member)
			if !baggageMember.MatchString(member) {
				continue
			}
			if size += len(member) + len(","); size-len(",") > maxBaggageBytes {
				return strings.Join(kept, ",")
			}
			kept = append(kept, member)
		}
	}
	return strings.Join(kept, ",")
}
