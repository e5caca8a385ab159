package schemaform

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// schema is what a form needs of a JSON Schema. Everything else is left to whoever checks the
// value.
type schema struct {
	Ref         string `json:"$ref"`
	Title       string
	Description string
	Type        typeNames
	Properties  properties
	Required    []string
	Items       *schema
	PrefixItems json.RawMessage
	Enum        []json.RawMessage
	Const       json.RawMessage
	Default     json.RawMessage
	Format      string
	MaxLength   *json.Number
	Minimum     *json.Number
	Maximum     *json.Number

	AnyOf, OneOf, AllOf, If json.RawMessage
	Defs                    map[string]*schema `json:"$defs"`
	Definitions             map[string]*schema
}

// typeNames are the types of a value: one text, or a list.
type typeNames []string

// UnmarshalJSON reads both.
func (t *typeNames) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]string)(t))
	}
	*t = []string{""}
	return json.Unmarshal(text, &(*t)[0])
}

// properties keep the order in which the schema has them.
type properties struct {
	names []string
	of    map[string]*schema
}

// UnmarshalJSON reads an object.
func (p *properties) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &p.of); err != nil {
		return err
	}
	p.names = memberNames(text)
	return nil
}

// memberNames are the names of an object, in their order, each once.
func memberNames(object []byte) (names []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || d.Decode(&value) != nil {
			return names
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// readSchema returns nil for what is no object, such as true.
func readSchema(text json.RawMessage) *schema {
	s := &schema{}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || json.Unmarshal(text, s) != nil {
		return nil
	}
	return s
}

// resolved follows references within the schema, a few at most.
func (s *schema) resolved(root *schema) *schema {
	for range 8 {
		if s == nil || s.Ref == "" {
			return s
		}
		name, inDefs := strings.CutPrefix(s.Ref, "#/$defs/")
		definitions := root.Defs
		if !inDefs {
			if name, inDefs = strings.CutPrefix(s.Ref, "#/definitions/"); !inDefs {
				return nil
			}
			definitions = root.Definitions
		}
		s = definitions[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return nil
}

// kind is how a value of the schema is edited: asJSON unless the schema is simple.
func (s *schema) kind() Kind {
	if s == nil || s.AnyOf != nil || s.OneOf != nil || s.AllOf != nil || s.If != nil {
		return asJSON
	}
	if len(s.Enum) > 0 || s.Const != nil {
		return asChoice
	}
	types := slices.DeleteFunc(slices.Clone(s.Type), func(name string) bool { return name == "null" })
	if len(types) != 1 {
		if len(types) == 0 && len(s.Properties.names) > 0 {
			return asObject
		}
		return asJSON
	}
	switch {
	case types[0] == "object" && len(s.Properties.names) > 0:
		return asObject
	case types[0] == "array" && s.Items != nil && s.PrefixItems == nil:
		return asArray
	case types[0] == "string":
		return asText
	case types[0] == "integer" || types[0] == "number":
		return asNumber
	case types[0] == "boolean":
		return asBoolean
	}
	return asJSON
}
