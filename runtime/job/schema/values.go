package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// appendKey appends a text that is the same for equal values only. Numbers are compared
// by value, not by spelling. It charges a step for each value.
func (m *meter) appendKey(key []byte, value any) []byte {
	m.charge(1)
	switch value := value.(type) {
	case nil:
		return append(key, 'n')
	case bool:
		return strconv.AppendBool(key, value)
	case string:
		m.charge(len(value) / bytesForStep)
		key = strconv.AppendInt(append(key, 's'), int64(len(value)), 10)
		return append(append(key, ':'), value...)
	case json.Number:
		return append(append(append(key, 'd'), worth(value.String())...), ';')
	case []any:
		key = append(key, '[')
		for _, item := range value {
			key = m.appendKey(key, item)
		}
		return append(key, ']')
	case map[string]any:
		key = append(key, '{')
		for _, name := range slices.Sorted(maps.Keys(value)) {
			key = m.appendKey(m.appendKey(key, name), value[name])
		}
		return append(key, '}')
	}
	return append(key, '?')
}

// worth returns the same text for all spellings of a number.
func worth(number string) string {
	if len(number) < 18 && !strings.ContainsAny(number, ".eE") && number != "-0" {
		return number
	}
	if exact, ok := new(big.Rat).SetString(number); ok {
		return exact.RatString()
	}
	return number
}

// isOneOf reports whether the value has one of the types, given by name.
func isOneOf(value any, types []string) bool {
	switch value := value.(type) {
	case nil:
		return slices.Contains(types, "null")
	case bool:
		return slices.Contains(types, "boolean")
	case string:
		return slices.Contains(types, "string")
	case []any:
		return slices.Contains(types, "array")
	case map[string]any:
		return slices.Contains(types, "object")
	case json.Number:
		return slices.Contains(types, "number") || slices.Contains(types, "integer") && !strings.Contains(worth(value.String()), "/")
	}
	return false
}

// listed are the values of an enum or a const, for lookups. The library compares one
// after the other, which takes some microseconds for each number.
type listed struct {
	values []any
	texts  map[string]bool
	others map[string]bool
	// arrays and objects say whether the others include any.
	arrays, objects bool
}

func newListed(values []any) *listed {
	l := &listed{values: values, texts: map[string]bool{}, others: map[string]bool{}}
	for _, value := range values {
		switch value := value.(type) {
		case string:
			l.texts[value] = true
			continue
		case []any:
			l.arrays = true
		case map[string]any:
			l.objects = true
		}
		l.others[string(new(meter).appendKey(nil, value))] = true
	}
	return l
}

func (l *listed) has(value any, m *meter) bool {
	switch value := value.(type) {
	case string:
		return l.texts[value]
	case []any:
		if !l.arrays {
			return false
		}
	case map[string]any:
		if !l.objects {
			return false
		}
	}
	return len(l.others) > 0 && l.others[string(m.appendKey(nil, value))]
}

// unlistedError says that a value is not among those that the schema allows, or not of
// an allowed type. The library takes it for an error of a format.
type unlistedError struct{ refusal jsonschema.ErrorKind }

func (*unlistedError) Error() string { return "is not allowed" }

// restore replaces unlistedErrors by what the library would have reported.
func restore(refused *jsonschema.ValidationError) {
	var unlisted *unlistedError
	if format, ok := refused.ErrorKind.(*kind.Format); ok && errors.As(format.Err, &unlisted) {
		refused.ErrorKind = unlisted.refusal
	}
	for _, cause := range refused.Causes {
		restore(cause)
	}
}

// uniqueItems finds duplicate items. The library compares all pairs of up to twenty.
type uniqueItems struct{ meter *meter }

func (u uniqueItems) Validate(ctx *jsonschema.ValidatorContext, value any) {
	items, _ := value.([]any)
	seen := make(map[string]int, len(items))
	for i, item := range items {
		key := string(u.meter.appendKey(nil, item))
		if first, twice := seen[key]; twice {
			ctx.AddError(&kind.UniqueItems{Duplicates: [2]int{first, i}})
			return
		}
		seen[key] = i
	}
}
