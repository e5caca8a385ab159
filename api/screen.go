package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a body. Without it a body of brackets costs
// many times its size to decode, here and in every handler.
const maxDepth = 100

// screen refuses text that is not JSON, before anything is made of it. The
// text begins at the given place of the body. No memory is needed that grows
// with the nesting of the text.
func screen(text []byte, start spot) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("the body is not UTF-8: %s", start.after(text[:validPrefix(text)]))
	}
	if i, deep := tooDeep(text); deep {
		return fmt.Errorf("the body is nested more than %d levels deep: %s", maxDepth, start.after(text[:i]))
	}
	if json.Valid(text) {
		return nil
	}
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the body is not JSON: %w: %s", err, start.after(text[:min(max(int(syntax.Offset), 1)-1, len(text))]))
	}
	return fmt.Errorf("the body is not JSON: %w", err)
}

// tooDeep returns the offset of the first bracket that lies too deep.
func tooDeep(text []byte) (offset int, deep bool) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i, true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return 0, false
}

func validPrefix(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// spot is a place in a body, for humans: both numbers count from 1, columns in
// bytes.
type spot struct{ line, column int }

var firstSpot = spot{line: 1, column: 1}

// after returns the place after the text that begins at s.
func (s spot) after(text []byte) spot {
	if lines := bytes.Count(text, []byte{'\n'}); lines > 0 {
		return spot{line: s.line + lines, column: len(text) - bytes.LastIndexByte(text, '\n')}
	}
	return spot{line: s.line, column: s.column + len(text)}
}

func (s spot) String() string { return fmt.Sprintf("line %d, column %d", s.line, s.column) }
