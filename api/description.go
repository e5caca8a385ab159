package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"sync"

	"github.com/go-chi/chi/v5"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// described is the OpenAPI description of a server with the default access. A test
// writes it, with package test/describe.
//
//go:embed openapi.yaml
var described []byte

// serveDescription serves the OpenAPI description. The first request for each format
// renders it.
func serveDescription(router chi.Router, version string, g *guard.Guard) {
	serve := func(path, contentType string, render func(*yaml.Node) []byte) {
		text := sync.OnceValue(func() []byte { return render(describe(version, g)) })
		router.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text())
		})
	}
	serve("/openapi.json", "application/openapi+json", asJSON)
	serve("/openapi.yaml", "application/openapi+yaml", asYAML)
}

// describe returns the description of one server: its version, and which operations
// need credentials.
func describe(version string, g *guard.Guard) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(described, &document); err != nil {
		panic(err) // That fails in the tests.
	}
	root := document.Content[0]
	member(member(root, "info"), "version").SetString(version)
	for _, path := range members(member(root, "paths")) {
		for _, operation := range members(path) {
			schemes := []map[string][]string{{"basic": {}}, {"bearer": {}}}
			if !g.Needs(guard.Scope(member(operation, "x-scope").Value)) {
				schemes = append(schemes, map[string][]string{})
			}
			_ = member(operation, "security").Encode(schemes) // Such a list can always be encoded.
		}
	}
	return root
}

// members are the names and values of an object, in their order.
func members(object *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(name, value *yaml.Node) bool) {
		for pair := range slices.Chunk(object.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func member(object *yaml.Node, wanted string) *yaml.Node {
	for name, value := range members(object) {
		if name.Value == wanted {
			return value
		}
	}
	panic("the description has no " + wanted)
}

// asYAML returns the text that openapi.yaml has for the same document.
func asYAML(document *yaml.Node) []byte {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	_ = encoder.Encode(document) // A buffer never fails.
	return text.Bytes()
}

// asJSON keeps the order of members: in an example it helps the reader.
func asJSON(part *yaml.Node) []byte {
	var items [][]byte
	switch part.Kind {
	case yaml.MappingNode:
		for name, value := range members(part) {
			items = append(items, slices.Concat(asJSON(name), []byte{':'}, asJSON(value)))
		}
		return slices.Concat([]byte{'{'}, bytes.Join(items, []byte{','}), []byte{'}'})
	case yaml.SequenceNode:
		for _, item := range part.Content {
			items = append(items, asJSON(item))
		}
		return slices.Concat([]byte{'['}, bytes.Join(items, []byte{','}), []byte{']'})
	default:
		var scalar any
		_ = part.Decode(&scalar) // JSON has all of the scalars in the file.
		text, _ := json.Marshal(scalar)
		return text
	}
}
