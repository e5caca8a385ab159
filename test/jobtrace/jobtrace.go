// Package jobtrace checks the traces of the test handlers' jobs. It is for tests that
// receive spans in a collector and for tests that query Jaeger.
package jobtrace

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// Process returns the only span of the attempt.
func Process(t testing.TB, story []collector.Span, attempt int64) collector.Span {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(story), func(span collector.Span) bool {
		return !strings.HasPrefix(span.Name, "process ") || span.Attributes["job.attempt"] != attempt
	})
	require.Len(t, found, 1)
	return found[0]
}

// Events are the names of the span's events.
func Events(span collector.Span) []string {
	var names []string
	for _, event := range span.Events {
		names = append(names, event.Name)
	}
	return names
}

// LaterEvents are the names without the checkpoint. An attempt that is interrupted while
// it saves a checkpoint may or may not have that event.
func LaterEvents(span collector.Span) []string {
	return slices.DeleteFunc(Events(span), func(name string) bool { return name == "job.checkpoint" })
}
