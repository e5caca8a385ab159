package show

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes one line of a text that others wrote: whatever could move the
// cursor, change the terminal, or turn the direction of writing is escaped as
// in a Go string.
func Clean(text string) string { return clean(text, false) }

// CleanLines is Clean for texts of several lines, such as stacks: line feeds
// and tabs stay.
func CleanLines(text string) string {
	return clean(strings.ReplaceAll(text, "\r\n", "\n"), true)
}

func clean(text string, lines bool) string {
	if !strings.ContainsFunc(text, isUnsafe) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		switch {
		case lines && (r == '\n' || r == '\t'):
			out.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case !isUnsafe(r):
			out.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// isUnsafe knows control characters, line and paragraph separators, and those
// that turn the direction of writing or cannot be seen.
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff' || (r >= 0xe0000 && r <= 0xe007f)
}

// JSON prints JSON as it came, and a line feed. On a terminal, characters
// that could steer it are escaped: to those who read JSON it is the same.
func (s Screen) JSON(text []byte) error {
	if s.Terminal {
		text = []byte(cleanJSON(string(text)))
	}
	_, err := s.Write(append(text[:len(text):len(text)], '\n'))
	return err
}

func cleanJSON(text string) string {
	if !strings.ContainsFunc(text, isUnsafe) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r < ' ' && r != '\n' && r != '\t' && r != '\r':
			// Not JSON: such characters stand in no string.
		case r < ' ' || !isUnsafe(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// Print writes a text that is clean, and ignores that it could not be written:
// progress and remarks are not worth failing for.
func (s Screen) Print(text string) { _, _ = io.WriteString(s, text) }
