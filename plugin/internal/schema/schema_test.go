package schema

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type (
	point struct {
		X int `json:"x"`
		Y int `json:"y"`
	}
	tree struct {
		Name     string `json:"name"`
		Children []tree `json:"children,omitempty"`
	}
	box[T any] struct {
		Content T `json:"content"`
	}
	oneOrMany []string
	order     struct {
		ID     string            `json:"id" jsonschema:"minLength=1"`
		Count  int               `json:"count,omitempty"`
		At     time.Time         `json:"at"`
		Wait   *float64          `json:"wait,omitempty"`
		Tags   oneOrMany         `json:"tags" jsonschema:"oneof_type=string;array"`
		From   netip.Addr        `json:"from"`
		Labels map[string]string `json:"labels"`
		Raw    json.RawMessage   `json:"raw"`
		Nested point             `json:"nested"`
	}
)

func (o *oneOrMany) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*[]string)(o)) }

func TestASchemaDescribesThePayloadsType(t *testing.T) {
	const draft = `"$schema":"https://json-schema.org/draft/2020-12/schema"`
	const pointAlone = `{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y"]}`
	cases := map[string]struct {
		of   reflect.Type
		want string
	}{
		"a struct":      {reflect.TypeFor[point](), `{` + draft + `,` + pointAlone[1:]},
		"a pointer":     {reflect.TypeFor[*point](), `{` + draft + `,` + pointAlone[1:]},
		"a map":         {reflect.TypeFor[map[string]int](), `{` + draft + `,"type":["object","null"],"additionalProperties":{"type":"integer"}}`},
		"a text":        {reflect.TypeFor[string](), `{` + draft + `,"type":"string"}`},
		"no members":    {reflect.TypeFor[struct{}](), `{` + draft + `,"type":["object","null"],"properties":{}}`},
		"a number":      {reflect.TypeFor[json.Number](), `{` + draft + `,"type":"number"}`},
		"anything":      {reflect.TypeFor[any](), ``},
		"anything, raw": {reflect.TypeFor[json.RawMessage](), ``},
		"many things": {reflect.TypeFor[order](), `{` + draft + `,"type":"object",
			"properties":{"id":{"type":"string","minLength":1},"count":{"type":["integer","null"]},"at":{"type":"string","format":"date-time"},
			"wait":{"type":["number","null"]},"tags":{"oneOf":[{"type":"string"},{"type":"array"},{"type":"null"}]},"from":{"type":"string"},
			"labels":{"type":["object","null"],"additionalProperties":{"type":"string"}},"raw":true,
			"nested":{"$ref":"#/$defs/github.com_holdfast_jobs_holdfast_plugin_internal_schema.point"}},
			"required":["id","at","tags","from","labels","raw","nested"],
			"$defs":{"github.com_holdfast_jobs_holdfast_plugin_internal_schema.point":` + pointAlone + `}}`},
		"a type within itself": {reflect.TypeFor[tree](), `{` + draft + `,"$ref":"#/$defs/github.com_holdfast_jobs_holdfast_plugin_internal_schema.tree",
			"$defs":{"github.com_holdfast_jobs_holdfast_plugin_internal_schema.tree":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
			"children":{"type":["array","null"],"items":{"$ref":"#/$defs/github.com_holdfast_jobs_holdfast_plugin_internal_schema.tree"}}}}}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Of(c.of)
			require.NoError(t, err)
			if c.want == "" {
				require.Nil(t, got)
				return
			}
			require.JSONEq(t, c.want, string(got))
		})
	}
}

func TestASchemaRefersToNothingOutside(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[order](), reflect.TypeFor[tree](), reflect.TypeFor[box[box[point]]](), reflect.TypeFor[map[string]tree](),
	} {
		text, err := Of(of)
		require.NoError(t, err)
		require.NotContains(t, string(text), `"$id"`)
		var schema map[string]any
		require.NoError(t, json.Unmarshal(text, &schema))
		definitions, _ := schema["$defs"].(map[string]any)
		for part := range strings.SplitSeq(string(text), `"$ref":"`) {
			if name, isRef := strings.CutPrefix(part, "#/$defs/"); isRef {
				name, _, _ = strings.Cut(name, `"`)
				require.Contains(t, definitions, name, "%s", text)
				require.Regexp(t, `^[\w.]+$`, name, "fit for a URI")
			}
		}
	}
}

func TestATypeThatNoJSONFitsHasNoSchema(t *testing.T) {
	_, err := Of(reflect.TypeFor[struct{ C chan int }]())
	require.ErrorContains(t, err, "chan int")
}
