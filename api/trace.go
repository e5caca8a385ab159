package api

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// traceparent is the W3C header's version 00. Later versions may carry more,
// and are not passed on to handlers that would not know them.
var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// tracestate is printable ASCII: a list of key=value members.
var tracestate = regexp.MustCompile(`^[\x20-\x7e]{1,512}$`)

// traceOf returns the trace context of the request, or none when it is
// malformed: the standard has a receiver ignore it and start anew.
func traceOf(header http.Header) job.Trace {
	parent := strings.TrimSpace(header.Get("traceparent"))
	if len(header.Values("traceparent")) != 1 || !traceparent.MatchString(parent) ||
		parent[3:35] == strings.Repeat("0", 32) || parent[36:52] == strings.Repeat("0", 16) {
		return job.Trace{}
	}
	state := strings.Join(header.Values("tracestate"), ",")
	if !tracestate.MatchString(state) || !strings.Contains(state, "=") {
		state = ""
	}
	return job.Trace{Parent: parent, State: state}
}
