package job

import (
	"strings"
	"unicode/utf8"
)

// CleanText makes a text from outside storable: valid UTF-8 without NUL, at most limit
// bytes, cut between characters. A cut text does not keep the whole one in memory.
func CleanText(s string, limit int) string {
	long := len(s) > limit
	if long {
		s = s[:min(len(s), limit+utf8.UTFMax)] // the rest would be cleaned for nothing
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	if long {
		s = strings.Clone(s)
	}
	return s
}
