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

// screen refuses text that is not JSON, before anything is made of it. It
// needs no memory that grows with the nesting of the text.
func screen(text []byte) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("the body is not UTF-8: %s", position(text, validPrefix(text)))
	}
	if i, deep := tooDeep(text); deep {
		return fmt.Errorf("the body is nested more than %d levels deep: %s", maxDepth, position(text, i))
	}
	if json.Valid(text) {
		return nil
	}
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the body is not JSON: %w: %s", err, position(text, int(max(syntax.Offset, 1))-1))
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

// position tells where the byte at the offset stands, for humans.
func position(text []byte, offset int) string {
	before := text[:min(offset, len(text))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
