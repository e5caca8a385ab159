package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A key is the path from the configuration's root to a setting. Its parts are
// field names, names that you chose (jobs.types.SLEEP_JOB) and list indexes
// (plugins.0).
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

func (k key) lower() key {
	parts := make(key, len(k))
	for i, part := range k {
		parts[i] = strings.ToLower(part)
	}
	return parts
}

// below returns the key of a part of what k leads to.
func (k key) below(part string) key { return append(slices.Clone(k), part) }

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

// settable returns the canonical form of a key that takes a text. Its errors
// name a key that you can set instead.
func settable(k key) (key, error) {
	located, t := locate(k)
	switch {
	case t != nil && !hasParts(t):
		return located, nil
	case t != nil:
		return nil, fmt.Errorf("%s has parts; set one of them, such as %s", located, firstSetting(t, located))
	}
	if list, t := locate(k[:len(k)-1]); t != nil && t.Kind() == reflect.Slice && !isList(t) {
		return nil, fmt.Errorf("%s is set as a whole, its items separated by commas", list)
	}
	return nil, unknownKey(k)
}

// firstSetting is the first key below a node that takes a text.
func firstSetting(t reflect.Type, at key) string {
	keys := knownKeys(t, at, nil)
	for i, known := range keys[:len(keys)-1] {
		if !strings.HasPrefix(keys[i+1], known+".") {
			return known
		}
	}
	return keys[len(keys)-1]
}

// locate follows a key from the root. It returns the key with field names in
// lower case, and the type of its value; nil for an unknown key.
func locate(k key) (key, reflect.Type) {
	at, t := key{}, reflect.TypeFor[Config]()
	for _, part := range k {
		switch {
		case t.Kind() == reflect.Struct:
			part = strings.ToLower(part)
			t = fieldsOf(t)[part]
		case t.Kind() == reflect.Map && part != "":
			t = t.Elem()
		case isList(t) && index(part) != "":
			part, t = index(part), t.Elem()
		default:
			t = nil
		}
		if t == nil {
			return nil, nil
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		at = append(at, part)
	}
	return at, t
}

// index returns the canonical form of a list index; empty when it is none.
func index(text string) string {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// hasParts reports whether the type's settings are below it.
func hasParts(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map || isList(t)
}

// isList reports whether the type is a list of items that have parts.
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

// checkTree returns an error for the first unknown key of a file's content.
func checkTree(tree any, at key) error {
	located, t := locate(at)
	if t == nil || !slices.Equal(located, at) {
		return unknownKey(at)
	}
	switch node := tree.(type) {
	case map[string]any:
		if isList(t) {
			return fmt.Errorf("%s: must be a list", at)
		}
		if !hasParts(t) {
			return nil // The decoder reports the value.
		}
		for _, name := range slices.Sorted(maps.Keys(node)) {
			if err := checkTree(node[name], at.below(name)); err != nil {
				return err
			}
		}
	case []any:
		if !isList(t) {
			return nil
		}
		for i, item := range node {
			if err := checkTree(item, at.below(strconv.Itoa(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknownKey names the successor of a key of an earlier version, or else the
// most similar known key.
func unknownKey(unknown key) error {
	if now, found := renamed(unknown); found {
		return fmt.Errorf("%s is now called %s", unknown, now)
	}
	best, least := "", 0
	for _, known := range knownKeys(reflect.TypeFor[Config](), nil, unknown) {
		if far := distance(strings.ToLower(unknown.String()), strings.ToLower(known)); best == "" || far < least {
			best, least = known, far
		}
	}
	return fmt.Errorf("unknown key %s; the nearest known one is %s", unknown, best)
}

// knownKeys lists the keys of a type, those with parts included. For names that
// users choose it takes those of the model.
func knownKeys(t reflect.Type, above, model key) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var keys []string
	add := func(name string, inner reflect.Type) {
		at := above.below(name)
		keys = append(append(keys, at.String()), knownKeys(inner, at, model)...)
	}
	chosen := "NAME"
	if len(model) > len(above) {
		chosen = model[len(above)]
	}
	switch {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if name := t.Field(i).Tag.Get("koanf"); name != "" {
				add(name, t.Field(i).Type)
			}
		}
	case t.Kind() == reflect.Map:
		add(chosen, t.Elem())
	case isList(t):
		if index(chosen) == "" {
			chosen = "0"
		}
		add(chosen, t.Elem())
	}
	return keys
}

// distance is the Levenshtein distance of two texts.
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
