package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A key is the way from the configuration's root to a setting: names of
// fields, names that the user chose (jobs.types.SLEEP_JOB), and places in
// lists (plugins.0).
type key []string

func (k key) String() string {
	parts := make([]string, len(k))
	for i, part := range k {
		if parts[i] = part; strings.Contains(part, ".") {
			parts[i] = `"` + part + `"`
		}
	}
	return strings.Join(parts, ".")
}

// lower is the key in lower case, which a variable cannot have.
func (k key) lower() key {
	parts := make(key, len(k))
	for i, part := range k {
		parts[i] = strings.ToLower(part)
	}
	return parts
}

// parseKey splits a.b."c.d" at the dots outside quotes.
func parseKey(text string) key {
	var k key
	var part strings.Builder
	quoted := false
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '.' && !quoted:
			k = append(k, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	return append(k, part.String())
}

// settable returns the canonical form of a key that a text can be set to. Its
// errors say what can be set in place of any other.
func settable(k key) (key, error) {
	root := reflect.TypeFor[config]()
	located, t := locate(root, k)
	switch {
	case t != nil && !branches(t):
		return located, nil
	case t != nil:
		return nil, fmt.Errorf("%s has parts; set one of them, such as %s", located, firstSetting(t, located))
	}
	list, t := locate(root, k[:len(k)-1])
	if t != nil && t.Kind() == reflect.Slice && !isList(t) {
		return nil, fmt.Errorf("%s is set as a whole, its items parted by commas", list)
	}
	return nil, unknownKey(k)
}

// firstSetting is the first key below a node that a text can be set to.
func firstSetting(t reflect.Type, at key) string {
	keys := knownKeys(t, at, nil)
	for i, known := range keys[:len(keys)-1] {
		if !strings.HasPrefix(keys[i+1], known+".") {
			return known
		}
	}
	return keys[len(keys)-1]
}

// locate follows the key through the type and returns its canonical form, with
// names of fields in lower case and all others as they are, and the type of
// what is there; nil when there is no such key.
func locate(t reflect.Type, k key) (key, reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(k) == 0 {
		return nil, t
	}
	var name string
	var inner reflect.Type
	switch {
	case t.Kind() == reflect.Struct:
		name = strings.ToLower(k[0])
		inner = fieldsOf(t)[name]
	case t.Kind() == reflect.Map && k[0] != "":
		name, inner = k[0], t.Elem()
	case isList(t):
		if n, ok := place(k[0]); ok {
			name, inner = strconv.Itoa(n), t.Elem()
		}
	}
	if inner == nil {
		return nil, nil
	}
	rest, found := locate(inner, k[1:])
	return append(key{name}, rest...), found
}

// place reads the place of an item in a list.
func place(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0
}

// branches reports whether settings lie below the type rather than in it.
func branches(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map || isList(t)
}

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("koanf"); name != "" {
			fields[name] = t.Field(i).Type
		}
	}
	return fields
}

// checkTree returns an error for the first key in the tree, as a file has it,
// that the type does not know.
func checkTree(t reflect.Type, tree any, above key) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if nodes, ok := tree.(map[string]any); ok {
		if isList(t) {
			return fmt.Errorf("%s: must be a list", above)
		}
		for _, name := range slices.Sorted(mapKeys(nodes)) {
			at := append(slices.Clone(above), name)
			var inner reflect.Type
			switch t.Kind() {
			case reflect.Struct:
				inner = fieldsOf(t)[name]
			case reflect.Map:
				inner = t.Elem()
			default:
				return nil // The decoder says what is wrong with the value.
			}
			if inner == nil {
				return unknownKey(at)
			}
			if err := checkTree(inner, nodes[name], at); err != nil {
				return err
			}
		}
	}
	if items, ok := tree.([]any); ok && isList(t) {
		for i, item := range items {
			if err := checkTree(t.Elem(), item, append(slices.Clone(above), strconv.Itoa(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

func mapKeys(m map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// unknownKey names the successor of a key of an earlier version, or else the
// known key that is most like the unknown one.
func unknownKey(unknown key) error {
	if now, found := renamed(unknown); found {
		return fmt.Errorf("%s is now called %s", unknown, now)
	}
	best, least := "", 0
	for _, known := range knownKeys(reflect.TypeFor[config](), nil, unknown) {
		if far := distance(strings.ToLower(unknown.String()), strings.ToLower(known)); best == "" || far < least {
			best, least = known, far
		}
	}
	return fmt.Errorf("unknown key %s; the nearest known one is %s", unknown, best)
}

// knownKeys lists the keys of the type, inner nodes included. Where the user
// chooses names, those of the model stand in.
func knownKeys(t reflect.Type, above, model key) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var keys []string
	below := func(name string, inner reflect.Type) {
		at := append(slices.Clone(above), name)
		keys = append(append(keys, at.String()), knownKeys(inner, at, model)...)
	}
	chosen := "NAME"
	if len(model) > len(above) {
		chosen = model[len(above)]
	}
	switch {
	case t.Kind() == reflect.Struct:
		fields := fieldsOf(t)
		for i := range t.NumField() {
			if name := t.Field(i).Tag.Get("koanf"); name != "" {
				below(name, fields[name])
			}
		}
	case t.Kind() == reflect.Map:
		below(chosen, t.Elem())
	case isList(t):
		if _, ok := place(chosen); !ok {
			chosen = "0"
		}
		below(chosen, t.Elem())
	}
	return keys
}

// distance is the number of letters to insert, delete or replace to make one
// text of the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
