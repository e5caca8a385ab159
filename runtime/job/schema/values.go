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

// appendKey appends a text that equal values share, and no others: numbers are
// equal by what they are worth. It charges a step for each value.
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

// worth writes a number such that equal ones are written alike.
func worth(number string) string {
	if len(number) < 18 && !strings.ContainsAny(number, ".eE") && number != "-0" {
		return number
	}
	if exact, ok := new(big.Rat).SetString(number); ok {
		return exact.RatString()
	}
	return number
}

// isOneOf reports whether the value is of one of the types, by their names.
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

// listed are the values of an enum or a const. The library compares with one
// after the other, and numbers take it some microseconds each.
type listed struct {
	// refusal is of a value that is not among them.
	refusal jsonschema.ErrorKind
	texts   map[string]bool
	others  map[string]bool
	// arrays and objects say whether there are such among the others.
	arrays, objects bool
}

func newListed(values []any, refusal jsonschema.ErrorKind) *listed {
	l := &listed{refusal: refusal, texts: map[string]bool{}, others: map[string]bool{}}
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

// unlistedError says that a value is not the one, among those or of the type
// that the schema wants. It comes from where the library looks for a format.
type unlistedError struct{ refusal jsonschema.ErrorKind }

func (*unlistedError) Error() string { return "is not listed" }

// restore puts what the library would have said in place of unlistedErrors.
func restore(refused *jsonschema.ValidationError) {
	var unlisted *unlistedError
	if format, ok := refused.ErrorKind.(*kind.Format); ok && errors.As(format.Err, &unlisted) {
		refused.ErrorKind = unlisted.refusal
	}
	for _, cause := range refused.Causes {
		restore(cause)
	}
}

// uniqueItems finds the same item twice. The library compares all pairs of up to
// twenty.
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
