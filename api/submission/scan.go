package submission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// maxDepth bounds the nesting of a submission. Without it, a body of brackets
// costs many times its size to decode, here and in every handler.
const maxDepth = 100

// scanner walks a JSON text once: it checks grammar, UTF-8 and nesting as it
// goes, and stops at the first fault. It allocates nothing.
type scanner struct {
	text  []byte
	i     int
	depth int
	fault fault
}

type fault int

const (
	badGrammar fault = iota + 1
	badUTF8
	tooDeep
)

func (s *scanner) fail(f fault) bool {
	s.fault = f
	return false
}

// next skips white space and returns the byte that follows; 0 at the end.
func (s *scanner) next() byte {
	for ; s.i < len(s.text); s.i++ {
		switch c := s.text[s.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// atEnd reports whether nothing but white space is left.
func (s *scanner) atEnd() bool {
	s.next()
	return s.i == len(s.text)
}

// value passes over any value.
func (s *scanner) value() bool {
	switch c := s.next(); c {
	case '{':
		return s.object(func([]byte) bool { return s.value() })
	case '[':
		return s.array(s.value)
	case '"':
		return s.string()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// object passes over an object. It calls member after each name, which is
// quoted; member must pass over the value.
func (s *scanner) object(member func(name []byte) bool) bool {
	if !s.open() {
		return false
	}
	if s.next() == '}' {
		return s.close()
	}
	for {
		s.next()
		begin := s.i
		if !s.string() {
			return false
		}
		name := s.text[begin:s.i]
		if s.next() != ':' {
			return s.fail(badGrammar)
		}
		s.i++
		if s.next(); !member(name) {
			return false
		}
		switch s.next() {
		case ',':
			s.i++
		case '}':
			return s.close()
		default:
			return s.fail(badGrammar)
		}
	}
}

// array passes over an array. item must pass over one value.
func (s *scanner) array(item func() bool) bool {
	if !s.open() {
		return false
	}
	if s.next() == ']' {
		return s.close()
	}
	for {
		if s.next(); !item() {
			return false
		}
		switch s.next() {
		case ',':
			s.i++
		case ']':
			return s.close()
		default:
			return s.fail(badGrammar)
		}
	}
}

func (s *scanner) open() bool {
	if s.depth++; s.depth > maxDepth {
		return s.fail(tooDeep)
	}
	s.i++
	return true
}

func (s *scanner) close() bool {
	s.depth--
	s.i++
	return true
}

func (s *scanner) string() bool {
	if s.i == len(s.text) || s.text[s.i] != '"' {
		return s.fail(badGrammar)
	}
	for s.i++; s.i < len(s.text); {
		switch c := s.text[s.i]; {
		case c == '"':
			s.i++
			return true
		case c == '\\':
			n := escape(s.text[s.i:])
			if n == 0 {
				return s.fail(badGrammar)
			}
			s.i += n
		case c < ' ':
			return s.fail(badGrammar)
		case c < utf8.RuneSelf:
			s.i++
		default:
			r, size := utf8.DecodeRune(s.text[s.i:])
			if r == utf8.RuneError && size == 1 {
				return s.fail(badUTF8)
			}
			s.i += size
		}
	}
	return s.fail(badGrammar)
}

// escape returns the length of the escape sequence that the text begins with; 0
// if it is none.
func escape(text []byte) int {
	switch {
	case len(text) < 2:
		return 0
	case strings.IndexByte(`"\/bfnrt`, text[1]) >= 0:
		return 2
	case text[1] != 'u' || len(text) < 6:
		return 0
	}
	for _, c := range text[2:6] {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return 0
		}
	}
	return 6
}

func (s *scanner) word(word string) bool {
	if !bytes.HasPrefix(s.text[s.i:], []byte(word)) {
		return s.fail(badGrammar)
	}
	s.i += len(word)
	return true
}

// number passes over a number, and fails for anything else.
func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return s.fail(badGrammar)
	}
	if s.skip('.') && !s.digits() {
		return s.fail(badGrammar)
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('-') {
			s.skip('+')
		}
		if !s.digits() {
			return s.fail(badGrammar)
		}
	}
	return true
}

func (s *scanner) skip(c byte) bool {
	if s.i < len(s.text) && s.text[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	begin := s.i
	for s.i < len(s.text) && s.text[s.i] >= '0' && s.text[s.i] <= '9' {
		s.i++
	}
	return s.i > begin
}

// problem is the answer to the fault. The text begins on the given line of the body, and
// end is the offset to report if the text ends too early. For a fault of grammar,
// encoding/json reads the text again and provides the message.
func (s *scanner) problem(line, end int) *v1.Problem {
	if s.fault == tooDeep {
		return unreadable("the body is nested more than %d levels deep: %s", maxDepth, positionOf(line, s.text[:s.i]))
	}
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(s.text, new(json.RawMessage)), &syntax) {
		at := int(syntax.Offset) - 1
		if syntax.Error() == "unexpected end of JSON input" {
			at = end
		}
		return unreadable("the body is not JSON: %s: %s", syntax, positionOf(line, s.text[:at]))
	}
	return unreadable("the body is not UTF-8: %s", positionOf(line, s.text[:s.i]))
}

func unreadable(format string, args ...any) *v1.Problem {
	return v1.NewProblem(http.StatusBadRequest, fmt.Sprintf(format, args...))
}

// position is a place in a body, for people: both numbers count from 1, columns
// in bytes.
type position struct{ line, column int }

// positionOf returns the position after a text that begins on the given line.
func positionOf(line int, text []byte) position {
	return position{line: line + bytes.Count(text, []byte{'\n'}), column: len(text) - bytes.LastIndexByte(text, '\n')}
}

func (p position) String() string { return fmt.Sprintf("line %d, column %d", p.line, p.column) }
