package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// scanner walks valid JSON along with the type it is decoded into, and finds the
// members to drop.
type scanner struct {
	text []byte
	at   int
	// passed are the members that the walk has passed and not dropped, of every object
	// that it is inside of.
	passed  []member
	dropped []member
}

// member is a member in the text. Its name is decoded. It ends where the next one
// begins, or the object ends.
type member struct {
	name       []byte
	begin, end int
}

// value walks a value of a type as decodedAs returns it.
func (s *scanner) value(t reflect.Type) {
	switch s.next() {
	case '{':
		s.object(t)
	case '[':
		s.array(t)
	case '"':
		s.quoted()
	default:
		for c := s.text[s.at]; c > ' ' && c != ',' && c != ']' && c != '}'; c = s.text[s.at] {
			s.at++
		}
	}
}

// next skips what separates values and returns the byte that follows.
func (s *scanner) next() byte {
	for {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			s.at++
		default:
			return c
		}
	}
}

// quoted skips a string and returns it, as it is written.
func (s *scanner) quoted() []byte {
	end := s.at + 1
	for ; s.text[end] != '"'; end++ {
		if s.text[end] == '\\' {
			end++
		}
	}
	begin := s.at
	s.at = end + 1
	return s.text[begin:s.at]
}

// name skips the name of a member and returns it as encoding/json reads it.
func (s *scanner) name() []byte {
	quoted := s.quoted()
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var decoded string
	_ = json.Unmarshal(quoted, &decoded) // It is valid.
	return []byte(decoded)
}

func (s *scanner) array(t reflect.Type) {
	var element reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		element = decodedAs(t.Elem())
	}
	s.at++
	for s.next() != ']' {
		s.value(element)
	}
	s.at++
}

func (s *scanner) object(t reflect.Type) {
	var known map[string]structMember
	var element reflect.Type
	if t != nil && t.Kind() == reflect.Struct {
		known = membersOf(t)
	} else if t != nil && t.Kind() == reflect.Map {
		element = decodedAs(t.Elem())
	}
	first := len(s.passed)
	s.at++
	for s.next() != '}' {
		m := member{begin: s.at}
		m.name = s.name()
		field, ok := known[string(m.name)]
		if known != nil {
			element = field.decoded
		}
		s.value(element)
		s.next()
		if m.end = s.at; known != nil && (!ok || field.ignored) {
			s.dropped = append(s.dropped, m)
		} else {
			s.passed = append(s.passed, m)
		}
	}
	s.at++
	s.dropRepeated(s.passed[first:])
	s.passed = s.passed[:first]
}

// dropRepeated drops all but the last of the members with the same name.
func (s *scanner) dropRepeated(members []member) {
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(bytes.Compare(a.name, b.name), cmp.Compare(a.begin, b.begin))
	})
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].name, members[i].name) {
			s.dropped = append(s.dropped, members[i-1])
		}
	}
}

// decodedAs returns the type behind pointers; nil for interfaces and for types
// that decode themselves, which say nothing about names.
func decodedAs(t reflect.Type) reflect.Type {
	for t != nil {
		pointer := reflect.PointerTo(t)
		switch {
		case pointer.Implements(jsonDecoder), pointer.Implements(textDecoder), t.Kind() == reflect.Interface:
			return nil
		case t.Kind() != reflect.Pointer:
			return t
		}
		t = t.Elem()
	}
	return nil
}
