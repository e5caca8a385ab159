package api

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// traceparent is the W3C header: version, trace, span, flags. Later versions than 00
// may have more behind them.
var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32}-[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// maxState bounds the tracestate, in bytes.
const maxState = 512

// maxBaggage bounds what is kept of a client's baggage, in bytes.
const maxBaggage = 1024

// baggageMember is name=value, perhaps with properties, in printable ASCII.
var baggageMember = regexp.MustCompile(`^[\x21-\x7e]+ *= *[\x20-\x7e]*$`)

// traceOf returns the trace context of the request and its baggage.
func traceOf(header http.Header) job.Trace {
	carried := contextOf(header)
	carried.Baggage = baggageOf(header)
	return carried
}

// contextOf returns the trace context of the request, as of version 00: what later
// versions have besides is theirs alone. A malformed one is none: the standard has a
// receiver ignore it and start anew.
func contextOf(header http.Header) job.Trace {
	sent := header.Values("traceparent")
	if len(sent) != 1 {
		return job.Trace{}
	}
	fields := traceparent.FindStringSubmatch(strings.TrimSpace(sent[0]))
	if fields == nil || fields[1] == "ff" || fields[1] == "00" && fields[4] != "" {
		return job.Trace{}
	}
	flags, err := strconv.ParseUint(fields[3], 16, 8)
	if err != nil {
		return job.Trace{}
	}
	known := trace.TraceFlags(flags) & (trace.FlagsSampled | trace.FlagsRandom)
	carried := job.Trace{Parent: "00-" + fields[2] + "-" + known.String()}
	if !remote(carried).IsValid() { // an id of zeros
		return job.Trace{}
	}
	if state := strings.Join(header.Values("tracestate"), ","); len(state) <= maxState {
		carried.State = state
		carried.State = remote(carried).TraceState().String() // empty when it is malformed
	}
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
