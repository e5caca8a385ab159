package show

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean makes one line of a text that others wrote. It escapes, as in a Go string,
// whatever could move the cursor, change the terminal, or turn the direction of
// writing.
func Clean(text string) string { return clean(text, "") }

// CleanLines is Clean for texts of several lines, such as stacks: line feeds and tabs
// stay.
func CleanLines(text string) string {
	return clean(strings.ReplaceAll(text, "\r\n", "\n"), "\n\t")
}

func clean(text, kept string) string {
	if !strings.ContainsFunc(text, isUnsafe) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case !isUnsafe(r), strings.ContainsRune(kept, r):
			out.WriteRune(r)
		case r < 0x80 && !strings.ContainsRune("\n\r\t", r):
			fmt.Fprintf(&out, `\x%02x`, r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}

// isUnsafe reports whether the character is a control character, a line or paragraph
// separator, invisible, or turns the direction of writing.
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff' || (r >= 0xe0000 && r <= 0xe007f)
}

// JSON prints JSON as it came, and a line feed. On a terminal it escapes characters
// that could steer the terminal; the JSON means the same.
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
			// No valid JSON contains these.
		case r < ' ' || !isUnsafe(r):
			out.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	return out.String()
}
