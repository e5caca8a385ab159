package tracing

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// documented returns the first column of the table in the documentation that has
// the heading.
func documented(t *testing.T, heading string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/reference/telemetry.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| "+heading+" |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, line := range strings.Split(table, "\n")[2:] {
		names = append(names, strings.Trim(strings.Split(line, "|")[1], " `"))
	}
	return names
}

func TestTheDocumentationListsAllAttributes(t *testing.T) {
	var known []string
	for _, key := range slices.Concat(api.SpanAttributes(), postgres.SpanAttributes(), spans.Attributes()) {
		known = append(known, string(key))
	}
	slices.Sort(known)
	require.ElementsMatch(t, slices.Compact(known), documented(t, "attribute"))
}

func TestTheDocumentationListsAllEvents(t *testing.T) {
	require.ElementsMatch(t, spans.Events(), documented(t, "event"))
}
