package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// fewMembers is up to how many members of an object are compared one by one.
const fewMembers = 16

// scanner walks valid JSON along with the type it is decoded into, and finds the
// members to leave out.
type scanner struct {
	text []byte
	at   int
	// members are the ones passed so far, of each object that the walk is in.
	members []scanned
	cuts    []span
}

// scanned is a member in the text. Its name is decoded.
type scanned struct {
	span
	name    []byte
	dropped bool
}

// span is a part of the text.
type span struct{ begin, end int }

// value walks a value. The type is nil where it says nothing about names.
func (s *scanner) value(t reflect.Type) {
	switch t = decodedAs(t); s.next() {
	case '{':
		s.object(t)
	case '[':
		s.array(t)
	case '"':
		s.quoted()
	default:
		for s.at < len(s.text) && !endsWord(s.text[s.at]) {
			s.at++
		}
	}
}

func endsWord(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// next skips white space and returns the byte that follows.
func (s *scanner) next() byte {
	for {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
}

// quoted skips a string and returns what is between its quotation marks.
func (s *scanner) quoted() (inside []byte, escaped bool) {
	s.at++
	for begin := s.at; ; s.at++ {
		switch s.text[s.at] {
		case '\\':
			escaped = true
			s.at++
		case '"':
			s.at++
			return s.text[begin : s.at-1], escaped
		}
	}
}

func (s *scanner) array(t reflect.Type) {
	var element reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		element = t.Elem()
	}
	s.at++
	for s.next() != ']' {
		s.value(element)
		if s.next() == ',' {
			s.at++
		}
	}
	s.at++
}

func (s *scanner) object(t reflect.Type) {
	var known map[string]structMember
	var element reflect.Type
	if t != nil && t.Kind() == reflect.Struct {
		known = membersOf(t)
	} else if t != nil && t.Kind() == reflect.Map {
		element = t.Elem()
	}
	first, dropping := len(s.members), false
	var seen map[string]int // where the members are, once they are many
	s.at++
	for s.next() != '}' {
		m := scanned{span: span{begin: s.at}}
		m.name = s.name()
		if known != nil {
			field, ok := known[string(m.name)]
			m.dropped, element = !ok || field.ignored, field.of
		}
		if len(s.members)-first == fewMembers {
			seen = s.index(first)
		}
		if !m.dropped {
			if twin := s.twin(m.name, first, seen); twin >= 0 {
				s.members[twin].dropped, dropping = true, true
			}
		}
		if seen != nil && !m.dropped {
			seen[string(m.name)] = len(s.members)
		}
		dropping = dropping || m.dropped
		here := len(s.members)
		s.members = append(s.members, m)
		s.next()
		s.at++ // the colon
		s.value(element)
		s.members[here].end = s.at
		if s.next() == ',' {
			s.at++
		}
	}
	if dropping {
		s.cut(s.members[first:], s.at)
	}
	s.members = s.members[:first]
	s.at++
}

// name skips the name of a member and returns it as encoding/json reads it.
func (s *scanner) name() []byte {
	begin := s.at
	name, escaped := s.quoted()
	if !escaped {
		return name
	}
	var decoded string
	if json.Unmarshal(s.text[begin:s.at], &decoded) != nil {
		return name
	}
	return []byte(decoded)
}

// twin returns the index of the member with the same name that is not dropped; -1
// for none.
func (s *scanner) twin(name []byte, first int, seen map[string]int) int {
	if seen != nil {
		if i, ok := seen[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := first; i < len(s.members); i++ {
		if m := &s.members[i]; !m.dropped && bytes.Equal(m.name, name) {
			return i
		}
	}
	return -1
}

func (s *scanner) index(first int) map[string]int {
	seen := make(map[string]int, 2*fewMembers)
	for i, m := range s.members[first:] {
		if !m.dropped {
			seen[string(m.name)] = first + i
		}
	}
	return seen
}

// cut cuts the dropped members, each with one comma: the one before it if an
// earlier member is kept, else the one after it. The object ends at end.
func (s *scanner) cut(members []scanned, end int) {
	kept := false
	for i, m := range members {
		switch {
		case !m.dropped:
			kept = true
		case kept:
			s.cuts = append(s.cuts, span{begin: members[i-1].end, end: m.end})
		case i+1 < len(members):
			s.cuts = append(s.cuts, span{begin: m.begin, end: members[i+1].begin})
		default:
			s.cuts = append(s.cuts, span{begin: m.begin, end: end})
		}
	}
}

// decodedAs returns the type behind pointers; nil for interfaces and for types
// that decode themselves.
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
