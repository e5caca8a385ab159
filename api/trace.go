package api

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// traceparent is the W3C header's version 00. Later versions may carry more,
// and are not passed on to handlers that would not know them.
var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// tracestate is printable ASCII: a list of key=value members.
var tracestate = regexp.MustCompile(`^[\x20-\x7e]{1,512}$`)

// maxBaggage bounds what is kept of a client's baggage, in bytes.
const maxBaggage = 1024

// baggageMember is name=value, perhaps with properties, in printable ASCII.
var baggageMember = regexp.MustCompile(`^[\x21-\x7e]+ *= *[\x20-\x7e]*$`)

// traceOf returns the trace context of the request and its baggage. A malformed
// context is none: the standard has a receiver ignore it and start anew.
func traceOf(header http.Header) job.Trace {
	carried := job.Trace{Baggage: baggageOf(header)}
	parent := strings.TrimSpace(header.Get("traceparent"))
	if len(header.Values("traceparent")) != 1 || !traceparent.MatchString(parent) ||
		parent[3:35] == strings.Repeat("0", 32) || parent[36:52] == strings.Repeat("0", 16) {
		return carried
	}
	state := strings.Join(header.Values("tracestate"), ",")
	if !tracestate.MatchString(state) || !strings.Contains(state, "=") {
		state = ""
	}
	carried.Parent, carried.State = parent, state
	return carried
}

// remote is the span that a job carries; an invalid one where it carries none.
func remote(carried job.Trace) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": carried.Parent, "tracestate": carried.State}))
}

// baggageOf returns the members of the baggage, as many from the first on as there
// is room for. Malformed ones are left out.
func baggageOf(header http.Header) string {
	var kept []string
	size := 0
	for _, line := range header.Values("baggage") {
		for member := range strings.SplitSeq(line, ",") {
			member = strings.TrimSpace(member)
			if !baggageMember.MatchString(member) {
				continue
			}
			if size += len(member) + len(","); size-len(",") > maxBaggage {
				return strings.Join(kept, ",")
			}
			kept = append(kept, member)
		}
	}
	return strings.Join(kept, ",")
}
