package show

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width is how many columns a clean text takes on a terminal.
func Width(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300: // Latin
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Shorten cuts a clean text to so many columns, with an ellipsis.
func Shorten(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	used := 0
	for i, r := range text {
		if used += runeWidth(r); used > columns-1 {
			return text[:i] + "…"
		}
	}
	return text
}

func padding(text string, columns int) string {
	return strings.Repeat(" ", max(columns-Width(text), 0))
}
