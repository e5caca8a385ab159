package plugin

import (
	"encoding/json"
	"reflect"

	"github.com/invopop/jsonschema"
)

// schemaOf makes the JSON Schema of a payload type. It refers to nothing
// outside of itself, and allows members that the type does not know, so that
// clients can be ahead of handlers. It is nil for types that any JSON fits,
// or that no schema can be made of.
func schemaOf[A any]() (schema json.RawMessage) {
	kind := reflect.TypeFor[A]()
	if kind.Kind() == reflect.Interface || kind == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	defer func() {
		if recover() != nil { // the reflector panics at types such as channels
			schema = nil
		}
	}()
	reflector := jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true, ExpandedStruct: kind.Kind() == reflect.Struct,
	}
	encoded, err := json.Marshal(reflector.ReflectFromType(kind))
	if err != nil {
		return nil
	}
	return encoded
}
