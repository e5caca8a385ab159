package jaeger

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// eventsShown is how many events of a span Jaeger's page shows without a click.
const eventsShown = 3

// A pageSpan is a span as Jaeger's pages receive it, with times in whole microseconds.
type pageSpan struct {
	OperationName       string
	StartTime, Duration int64
	Warnings            []string
	Logs                []pageEvent
	Tags                []pageTag
}

type pageEvent struct {
	Timestamp int64
	Fields    []pageTag
}

type pageTag struct {
	Key   string
	Value any
}

// tag is the value of the tag; nil if there is none.
func tag(tags []pageTag, key string) any {
	for _, t := range tags {
		if t.Key == key {
			return t.Value
		}
	}
	return nil
}

// page returns the spans that the page of the trace requests.
func page(t *testing.T, trace string) []pageSpan {
	t.Helper()
	var answer struct{ Data []struct{ Spans []pageSpan } }
	read(t, "/api/traces/"+trace, nil, &answer)
	require.Len(t, answer.Data, 1)
	require.NotEmpty(t, answer.Data[0].Spans)
	return answer.Data[0].Spans
}

func requireNoWarnings(t *testing.T, trace string) {
	t.Helper()
	for _, span := range page(t, trace) {
		require.Empty(t, span.Warnings, span.OperationName)
	}
}

// visible are the names of the events that the page shows for the span without a click:
// the earliest ones, of those that are not after the end of the trace.
func visible(spans []pageSpan, of pageSpan) []any {
	var end int64
	for _, span := range spans {
		end = max(end, span.StartTime+span.Duration)
	}
	events := slices.DeleteFunc(slices.Clone(of.Logs), func(e pageEvent) bool { return e.Timestamp > end })
	slices.SortStableFunc(events, func(a, b pageEvent) int { return int(a.Timestamp - b.Timestamp) })
	var names []any
	for _, event := range events[:min(len(events), eventsShown)] {
		names = append(names, tag(event.Fields, "event"))
	}
	return names
}
