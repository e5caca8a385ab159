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
// lists (handlers.0).
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

// locate follows the key through the type and returns its canonical form:
// names of fields in lower case, all others as they are.
func locate(t reflect.Type, k key) (key, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(k) == 0 {
		return nil, !branches(t)
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
		if n, err := strconv.Atoi(k[0]); err == nil && n >= 0 {
			name, inner = strconv.Itoa(n), t.Elem()
		}
	}
	if inner == nil {
		return nil, false
	}
	rest, found := locate(inner, k[1:])
	return append(key{name}, rest...), found
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

// unknownKey names the known key that is most like the unknown one.
func unknownKey(unknown key) error {
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
		if _, err := strconv.Atoi(chosen); err != nil {
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
