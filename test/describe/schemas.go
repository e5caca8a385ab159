package describe

import (
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	mediaJSON   = "application/json"
	mediaLines  = "application/x-ndjson"
	mediaPatch  = "application/merge-patch+json"
	mediaText   = "text/plain"
	mediaSchema = "application/schema+json"
)

// describer works on one document.
type describer struct{ *huma.OpenAPI }

func (d describer) schemaOf(value any) *huma.Schema {
	return d.Components.Schemas.Schema(reflect.TypeOf(value), true, "")
}

func (d describer) eachOperation(visit func(*huma.Operation)) {
	for _, item := range d.Paths {
		for _, operation := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if operation != nil {
				visit(operation)
			}
		}
	}
}

// linesOf describes a text with one JSON value per line. OpenAPI 3.1 cannot describe a
// single line (3.2 can, with itemSchema), but JSON Schema can describe the contents of
// a text.
func linesOf(line *huma.Schema) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Description: "One JSON value a line. Each matches contentSchema.",
		Extensions: map[string]any{"contentMediaType": mediaJSON, "contentSchema": line},
	}
}

// requestNames are the names of the types of bodies.
var requestNames = []string{reflect.TypeFor[v1.Submission]().Name(), reflect.TypeFor[v1.Edit]().Name()}

// ruleNames are those of other bodies that are no answers.
var ruleNames = []string{
	reflect.TypeFor[v1.LimitSpec]().Name(), reflect.TypeFor[v1.PauseSpec]().Name(),
	reflect.TypeFor[v1.EraseSpec]().Name(), reflect.TypeFor[v1.ErasureSpec]().Name(),
	reflect.TypeFor[v1.SchedulePauseSpec]().Name(), reflect.TypeFor[v1.PreviewSpec]().Name(), reflect.TypeFor[v1.BackfillSpec]().Name(),
}

// boundItems describes the items of lists in requests, which a struct tag cannot.
func (d describer) boundItems() {
	least, most := 1, 100
	for _, name := range requestNames {
		tags := d.Components.Schemas.Map()[name].Properties["tags"]
		tags.Items = &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most}
	}
	uniqueBy := d.Components.Schemas.Map()[requestNames[0]].Properties["uniqueBy"]
	uniqueBy.Items = &huma.Schema{Type: huma.TypeString, Format: "json-pointer"}
}

// spellNulls describes nullable values with anyOf. Huma writes a list of types, which
// some generators do not support.
func (d describer) spellNulls() {
	for _, schema := range d.Components.Schemas.Map() {
		for name, property := range schema.Properties {
			if !property.Nullable {
				continue
			}
			value := *property
			value.Nullable, value.Description, value.Examples = false, "", nil
			schema.Properties[name] = &huma.Schema{
				Description: property.Description, Examples: property.Examples,
				AnyOf: []*huma.Schema{&value, {Type: "null"}},
			}
		}
	}
}

// openAnswers allows answers to get more members without breaking clients that
// validate them. Only request bodies are closed, because the server refuses unknown
// members.
func (d describer) openAnswers() {
	for name, schema := range d.Components.Schemas.Map() {
		if !slices.Contains(requestNames, name) && !slices.Contains(ruleNames, name) {
			schema.AdditionalProperties = nil
		}
	}
}
