package exact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// Unmarshal is json.Unmarshal of what Text returns.
func Unmarshal(text []byte, into any) error {
	return json.Unmarshal(Text(text, reflect.TypeOf(into)), into)
}

// Text returns the text without what a value of the type must not be decoded
// from: of several members with the same name all but the last one, wherever
// they are, and members of structs that no field is named exactly like. A text
// in which there are none, or that is not JSON, is returned as it is.
//
// Types that decode themselves get their text without repeated members; the
// case of names in it is up to them.
func Text(text []byte, t reflect.Type) []byte {
	if !bytes.ContainsRune(text, '{') || !json.Valid(text) {
		return text
	}
	s := scanner{text: text}
	s.value(t)
	if len(s.cuts) == 0 {
		return text
	}
	// Those in a part that is left out itself lie within it.
	slices.SortFunc(s.cuts, func(a, b span) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
	kept, at := make([]byte, 0, len(text)), 0
	for _, cut := range s.cuts {
		if cut.begin >= at {
			kept = append(kept, text[at:cut.begin]...)
		}
		at = max(at, cut.end)
	}
	return append(kept, text[at:]...)
}
