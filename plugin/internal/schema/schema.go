// Package schema makes JSON Schemas of Go types, and decodes JSON as those
// schemas read it.
//
//	Of ── nullable ── members        Unmarshal ── scan ── members
//
// encoding/json alone would decode what no schema has checked: it takes "TO" for
// a field named "to", and merges objects that have the same name.
package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/invopop/jsonschema"
)

var (
	jsonDecoder = reflect.TypeFor[json.Unmarshaler]()
	textDecoder = reflect.TypeFor[encoding.TextUnmarshaler]()
	timestamp   = reflect.TypeFor[time.Time]()
	rawJSON     = reflect.TypeFor[json.RawMessage]()
	jsonNumber  = reflect.TypeFor[json.Number]()
	address     = reflect.TypeFor[url.URL]()
)

// Of makes the JSON Schema of a payload type. It accepts whatever encoding/json
// makes of the type's values and refers to nothing outside of itself. It allows
// members that the type does not know, so that clients can be ahead of handlers.
// It is nil for a type that accepts any JSON.
func Of(t reflect.Type) (schema json.RawMessage, err error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Interface || t == rawJSON {
		return nil, nil
	}
	defer func() {
		if problem := recover(); problem != nil { // the library panics at types such as channels
			schema, err = nil, fmt.Errorf("%v", problem)
		}
	}()
	reflector := jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true, ExpandedStruct: t.Kind() == reflect.Struct,
		Mapper: schemaOfDecoder, Namer: definitionName,
	}
	reflected := reflector.ReflectFromType(t)
	if reflector.ExpandedStruct {
		encoded, err := json.Marshal(reflected)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(encoded, []byte(`"#/$defs/`+definitionName(t)+`"`)) {
			// The type contains itself; expanded, its definition would be missing.
			reflector.ExpandedStruct = false
			reflected = reflector.ReflectFromType(t)
		}
	}
	return json.Marshal(nullablePayload(t, reflected))
}

// schemaOfDecoder is for types that decode themselves or that encoding/json
// treats specially: their Go form says nothing about their JSON. A type with a
// JSONSchema method describes itself.
func schemaOfDecoder(t reflect.Type) *jsonschema.Schema {
	_, describesItself := t.MethodByName("JSONSchema")
	pointer := reflect.PointerTo(t)
	switch {
	case describesItself, t == timestamp, t == rawJSON:
		return nil
	case t == jsonNumber:
		return &jsonschema.Schema{Type: "number"}
	case t == address:
		return &jsonschema.Schema{Type: "object"} // the library takes it for a string
	case t.Kind() == reflect.Uintptr:
		return &jsonschema.Schema{Type: "integer"}
	case pointer.Implements(jsonDecoder):
		return &jsonschema.Schema{}
	case pointer.Implements(textDecoder):
		return &jsonschema.Schema{Type: "string"}
	}
	return nil
}

// definitionName is unique for types of the same name and fit for a URI. It is
// empty for types without a name.
func definitionName(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	name := strings.TrimPrefix(t.PkgPath()+"."+t.Name(), "main.")
	return strings.Map(func(r rune) rune {
		if r == '.' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, strings.TrimPrefix(name, "."))
}
