package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// Unmarshal is json.Unmarshal, but the case of a member's name counts, and of
// several members with the same name only the last one is decoded.
func Unmarshal(text []byte, into any) error {
	return json.Unmarshal(prune(text, reflect.TypeOf(into)), into)
}

// prune returns the text without what must not be decoded into the type: all but
// the last of several members with the same name, and members of structs that do
// not have exactly the name of a field. It returns a text without such members, or
// that is not JSON, unchanged.
//
// Types that decode themselves get their text without repeated members. The case
// of names is up to them.
func prune(text []byte, t reflect.Type) []byte {
	if !bytes.ContainsRune(text, '{') || !json.Valid(text) {
		return text
	}
	s := scanner{text: text}
	s.value(decodedAs(t))
	if len(s.dropped) == 0 {
		return text
	}
	slices.SortFunc(s.dropped, func(a, b member) int { return cmp.Compare(a.begin, b.begin) })
	kept, at := make([]byte, 0, len(text)), 0
	for _, m := range s.dropped {
		if m.begin < at { // It lies within another.
			continue
		}
		kept = append(kept, text[at:m.begin]...)
		if at = m.end; text[at] == '}' {
			kept = bytes.TrimSuffix(bytes.TrimRight(kept, " \t\r\n"), []byte(","))
		}
	}
	return append(kept, text[at:]...)
}
