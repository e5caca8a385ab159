package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"
)

// adapter makes a reflected schema accept what encoding/json makes of the type:
// null for pointers, slices, maps and members that may be left out, which Go
// clients send; base64 for bytes; integers within their type.
type adapter struct {
	definitions jsonschema.Definitions
	adapted     map[string]bool
}

// nullablePayload adapts the schema of a whole payload. An absent payload is
// null, so a struct without required members accepts null.
func nullablePayload(t reflect.Type, s *jsonschema.Schema) *jsonschema.Schema {
	a := &adapter{definitions: s.Definitions, adapted: make(map[string]bool)}
	a.adapt(t, s) // in place: the definitions stay at the top
	whole := s
	if definition, ok := a.definitions[definitionName(t)]; ok {
		whole = definition
	}
	if t.Kind() == reflect.Struct && whole.Type == "object" && len(whole.Required)+len(whole.AnyOf)+len(whole.OneOf) == 0 {
		return orNull(s)
	}
	return s
}

// adapt returns the schema for the values of a type. It may change the one it is
// given.
func (a *adapter) adapt(t reflect.Type, s *jsonschema.Schema) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		return orNull(a.adapt(t.Elem(), s))
	}
	name := definitionName(t)
	if s.Ref != "" && s.Ref == "#/$defs/"+name {
		if definition := a.definitions[name]; !a.adapted[name] {
			a.adapted[name] = true
			a.definitions[name] = a.adapt(t, definition)
		}
		return s
	}
	if s.Ref != "" || t == rawJSON || describesItself(t) || schemaOfDecoder(t) != nil {
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			return orNull(s)
		}
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		a.adaptMembers(t, s)
	case reflect.Array:
		if s.Items != nil {
			s.Items = a.adapt(t.Elem(), s.Items)
		}
	case reflect.Slice:
		if isBytes(t) {
			s.Type, s.Items, s.ContentEncoding = "string", nil, "base64"
		} else if s.Items != nil {
			s.Items = a.adapt(t.Elem(), s.Items)
		}
		return orNull(s)
	case reflect.Map:
		// The library forbids negative keys.
		for _, value := range s.PatternProperties {
			s.PatternProperties, s.AdditionalProperties = nil, value
		}
		if s.AdditionalProperties != nil {
			s.AdditionalProperties = a.adapt(t.Elem(), s.AdditionalProperties)
		}
		return orNull(s)
	default:
		boundInteger(t, s)
	}
	return s
}

// adaptMembers adapts the schemas of a struct's members.
func (a *adapter) adaptMembers(t reflect.Type, s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	members := membersOf(t)
	for property := s.Properties.Oldest(); property != nil; property = property.Next() {
		m, known := members[property.Key]
		switch {
		case !known: // added by a method of the type
			continue
		case m.shared: // the library resolves the conflict by other rules
			property.Value = jsonschema.TrueSchema
			continue
		}
		property.Value = a.adapt(m.of, property.Value)
		if m.absent || !slices.Contains(s.Required, property.Key) {
			property.Value = orNull(property.Value)
		}
	}
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool {
		return members[name].shared || members[name].absent
	})
}

// orNull makes a schema accept null as well.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	null := &jsonschema.Schema{Type: "null"}
	isNull := func(one *jsonschema.Schema) bool { return one.Type == "null" }
	encoded, err := json.Marshal(s)
	types, _ := s.Extras["type"].([]string)
	switch {
	case err != nil || string(encoded) == "true" || slices.Contains(types, "null"),
		slices.ContainsFunc(s.AnyOf, isNull), slices.ContainsFunc(s.OneOf, isNull):
	case s.Ref != "" && len(s.AnyOf) == 0:
		s.AnyOf, s.Ref = []*jsonschema.Schema{{Ref: s.Ref}, null}, ""
	case len(s.OneOf) > 0 && !slices.ContainsFunc(s.OneOf, isMoreThanAType):
		s.OneOf = append(s.OneOf, null)
	case len(s.Enum) > 0 || s.Const != nil || len(s.AnyOf)+len(s.OneOf)+len(s.AllOf) > 0 || s.Not != nil || s.Type == "":
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, null}}
	default:
		if s.Extras == nil {
			s.Extras = make(map[string]any)
		}
		s.Extras["type"], s.Type = []string{s.Type, "null"}, ""
	}
	return s
}

func isMoreThanAType(s *jsonschema.Schema) bool {
	return s.Type == "" || !reflect.DeepEqual(s, &jsonschema.Schema{Type: s.Type})
}

// boundInteger keeps an integer within its type, unless a tag bounds it.
func boundInteger(t reflect.Type, s *jsonschema.Schema) {
	if s.Type != "integer" {
		return
	}
	unsigned := t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr
	lowest, highest := int64(-1)<<(t.Bits()-1), int64(1)<<(t.Bits()-1)-1
	if unsigned {
		lowest, highest = 0, 2*highest+1
	}
	if (unsigned || t.Bits() < 64) && s.Minimum == "" && s.ExclusiveMinimum == "" {
		s.Minimum = json.Number(fmt.Sprint(lowest))
	}
	if t.Bits() < 64 && s.Maximum == "" && s.ExclusiveMaximum == "" {
		s.Maximum = json.Number(fmt.Sprint(highest))
	}
}

func describesItself(t reflect.Type) bool {
	_, describes := t.MethodByName("JSONSchema")
	_, points := t.MethodByName("JSONSchemaAlias")
	return describes || points
}

// isBytes reports whether a slice is base64 in JSON.
func isBytes(t reflect.Type) bool {
	element := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 &&
		!element.Implements(reflect.TypeFor[json.Marshaler]()) && !element.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}
