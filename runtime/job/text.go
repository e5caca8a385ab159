package job

import (
	"strings"
	"unicode/utf8"
)

// CleanText makes a text from outside fit to be stored: valid UTF-8 without
// NUL, at most limit bytes, cut at a character.
func CleanText(s string, limit int) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
