package collector

import (
	"fmt"
	"slices"
	"strings"
)

// Named returns the spans with the name.
func Named(spans []Span, name string) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Name != name })
}

// OfTrace returns the spans of a trace.
func OfTrace(spans []Span, trace string) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Trace != trace })
}

// Tree draws the descendants of the parent, sorted by their start, with two spaces of
// indentation for each level.
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

// Text is everything in the spans, as text.
func Text(spans []Span) string {
	var text strings.Builder
	for _, span := range spans {
		fmt.Fprintf(&text, "%+v\n", span)
	}
	return text.String()
}
