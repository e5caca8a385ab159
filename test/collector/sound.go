package collector

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Sound checks what must hold for the spans of complete traces:
//   - No two spans have the same id.
//   - Every parent is among the spans or belongs to a client. Every linked span is
//     among the spans.
//   - No span ends before it starts.
//   - A child lies within its parent, to the precision of the sender's clock. A child of
//     a producer may start and end later.
//   - An event lies within its span. An event of an attempt is also visible in Jaeger.
//   - The attempts of a job are in one trace, one after the other.
func Sound(t testing.TB, spans []Span, clients ...string) {
	t.Helper()
	byID := make(map[string]Span)
	for _, span := range spans {
		other, taken := byID[span.ID]
		require.Falsef(t, taken, "%q and %q have one id", span.Name, other.Name)
		byID[span.ID] = span
	}
	for _, span := range spans {
		require.Falsef(t, span.End.Before(span.Start), "%q takes %s", span.Name, span.End.Sub(span.Start))
		if span.Parent != "" && !slices.Contains(clients, span.Parent) {
			parent, sent := byID[span.Parent]
			require.Truef(t, sent, "the parent of %q is missing", span.Name)
			within(t, span, parent)
		}
		for _, link := range span.Links {
			to, sent := byID[link.Span]
			require.Truef(t, sent, "%q has a link to a span that is missing", span.Name)
			require.Equal(t, to.Trace, link.Trace)
		}
		for _, event := range span.Events {
			require.Falsef(t, event.At.Before(span.Start) || event.At.After(span.End), "%s is not within %q", event.Name, span.Name)
			if span.Attributes["job.fence"] != nil {
				require.Truef(t, Visible(span, event), "Jaeger's page hides %s of %q", event.Name, span.Name)
			}
		}
	}
	inOrder(t, spans)
}

// Visible reports whether Jaeger's page shows an event of the last span of a trace.
// Jaeger stores the start and the duration of a span in whole microseconds, and hides
// events after that end.
func Visible(span Span, event Event) bool {
	return event.At.UnixMicro() <= span.Start.UnixMicro()+span.End.Sub(span.Start).Microseconds()
}

func within(t testing.TB, span, parent Span) {
	t.Helper()
	require.Equalf(t, parent.Trace, span.Trace, "%q is in another trace than its parent", span.Name)
	require.Falsef(t, span.Start.Before(parent.Start.Truncate(resolution(span))), "%q begins %s before its parent %q",
		span.Name, parent.Start.Sub(span.Start), parent.Name)
	if parent.Kind != otlp.Span_SPAN_KIND_PRODUCER {
		require.Falsef(t, span.End.After(parent.End), "%q ends %s after its parent %q",
			span.Name, span.End.Sub(parent.End), parent.Name)
	}
}

// resolution is the precision of the span's start, which its sender rounds down.
// JavaScript uses Date.now():
// https://github.com/open-telemetry/opentelemetry-js/issues/5019.
func resolution(span Span) time.Duration {
	if span.Resource["telemetry.sdk.language"] == "nodejs" {
		return time.Millisecond
	}
	return time.Nanosecond
}

// inOrder checks the attempts of each job, in the order of their fences. An attempt has a
// wait for its retry, a wait for a handler, its run, and the rest of its lease if that
// ran out. Not all of them must exist. Each begins no earlier than the previous one ends.
// A reaper knows when an attempt was claimed, but not when its handler began. So in its
// report the run begins with the claim, and the wait exists only if the lost worker
// had sent it.
func inOrder(t testing.TB, spans []Span) {
	t.Helper()
	type place struct {
		fence int64
		step  int
	}
	steps := []string{"retry wait ", "queue wait ", "process ", "lease wait "}
	jobs := make(map[any]map[place]Span)
	for _, span := range spans {
		step := slices.IndexFunc(steps, func(prefix string) bool { return strings.HasPrefix(span.Name, prefix) })
		if step < 0 {
			continue
		}
		id := span.Attributes["job.id"]
		fence, known := span.Attributes["job.fence"].(int64)
		require.Truef(t, known, "%q has no fence", span.Name)
		if jobs[id] == nil {
			jobs[id] = make(map[place]Span)
		}
		_, twice := jobs[id][place{fence, step}]
		require.Falsef(t, twice, "%q of fence %d of job %s is duplicated", span.Name, fence, id)
		jobs[id][place{fence, step}] = span
	}
	for id, told := range jobs {
		var before Span
		for fence := int64(1); len(told) > 0; fence++ {
			_, waited := told[place{fence, 1}]
			reaped := told[place{fence, 2}].Attributes["job.reaped_by"] != nil
			require.Truef(t, waited || reaped, "attempt %d of job %s has no wait", fence, id)
			for step := range steps {
				span, there := told[place{fence, step}]
				if !there {
					continue
				}
				if before.ID != "" {
					require.Equalf(t, before.Trace, span.Trace, "%q and %q of job %s are in two traces", before.Name, span.Name, id)
					require.Equalf(t, before.Parent, span.Parent, "%q and %q of job %s have two parents", before.Name, span.Name, id)
					began := span.Start
					if step == 2 && reaped {
						began = span.End
					}
					require.Falsef(t, began.Before(before.End), "%q begins %s before the end of %q",
						span.Name, before.End.Sub(began), before.Name)
				}
				if step == 2 && !reaped {
					require.Equal(t, before.End, span.Start, "%q begins when its wait is over", span.Name)
				}
				before = span
				delete(told, place{fence, step})
			}
		}
	}
}
