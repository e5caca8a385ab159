package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Named returns the spans with the name.
func Named(spans []Span, name string) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Name != name })
}

// OfTrace returns the spans of the trace.
func OfTrace(spans []Span, trace string) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Trace != trace })
}

// Tree draws the spans below those that have the parent, by their beginning, two
// blanks for each step down.
func Tree(spans []Span, parent string) string {
	var drawn strings.Builder
	draw(&drawn, sorted(spans), parent, "")
	return drawn.String()
}

func draw(into *strings.Builder, spans []Span, parent, indent string) {
	for _, span := range spans {
		if span.Parent == parent {
			fmt.Fprintln(into, indent+span.Name)
			draw(into, spans, span.ID, indent+"  ")
		}
	}
}

// Sound checks what holds for any number of spans of whole traces: ids are not used
// twice, every parent was sent or is one of the clients' own, and so was every span
// that a link leads to; nothing ends before it begins or begins before its parent does;
// and events lie within their span.
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
			require.Truef(t, sent, "the parent of %q was not sent", span.Name)
			require.Equalf(t, parent.Trace, span.Trace, "%q is in another trace than its parent", span.Name)
			require.Falsef(t, span.Start.Before(parent.Start), "%q begins %s before its parent %q",
				span.Name, parent.Start.Sub(span.Start), parent.Name)
			if strings.HasPrefix(parent.Name, "process ") {
				require.Falsef(t, span.End.After(parent.End), "%q ends %s after its parent %q",
					span.Name, span.End.Sub(parent.End), parent.Name)
			}
		}
		for _, link := range span.Links {
			to, sent := byID[link.Span]
			require.Truef(t, sent, "%q has a link to a span that was not sent", span.Name)
			require.Equal(t, to.Trace, link.Trace)
		}
		for _, event := range span.Events {
			require.Falsef(t, event.At.Before(span.Start) || event.At.After(span.End), "%s is not within %q", event.Name, span.Name)
		}
	}
}

// Text is all that the spans say.
func Text(spans []Span) string {
	var text strings.Builder
	for _, span := range spans {
		fmt.Fprintf(&text, "%+v\n", span)
	}
	return text.String()
}
