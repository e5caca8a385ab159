package store

import (
	"strings"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The column trace_state has the tracestate and, where the client has sent
// baggage, that on a second line: neither can have a line end in it. A column of
// its own would be read and written for every job, for what few have.

func traceState(t job.Trace) string {
	if t.Baggage == "" {
		return t.State
	}
	return t.State + "\n" + t.Baggage
}

func traceContext(parent, state string) job.Trace {
	state, baggage, _ := strings.Cut(state, "\n")
	return job.Trace{Parent: parent, State: state, Baggage: baggage}
}
