package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// about introduces the API to whoever opens its description.
const about = `Durable background jobs: submit over HTTP, run at least once.

A job is submitted, recorded before it is acknowledged, and executed later by a handler. Every request may be
repeated safely; a submission that may be repeated needs an idempotency key.

Times are RFC 3339 in UTC. Durations are numbers of seconds in answers, and Go durations such as "1m30s" in requests.
Answers may get more members over time: pass over those that you do not know.`

// chapters are the chapters of the description.
var chapters = []*huma.Tag{
	{Name: "Jobs", Description: "Submit jobs, see what became of them, and change your mind."},
	{Name: "Job types", Description: "What can be submitted, and what its payload must look like."},
	{Name: "Dead letters", Description: "Jobs that have failed for good, and giving them another chance."},
	{Name: "Operation", Description: "How the whole system is, for those who run it."},
}

// describe completes the description once it has every operation.
func describe(document *huma.OpenAPI) {
	document.Info.Description = about
	document.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	document.Servers = []*huma.Server{{URL: "/", Description: "The server that gave this description."}}
	document.Tags = chapters
	shareRejections(document)
	eachOperation(document, func(operation *huma.Operation) {
		sample := samples[operation.OperationID]
		operation.Description += "\n\nNeeds the scope " + string(scopeOf(operation)) + "."
		describeRejections(document, operation, sample.rejections)
		describeParameters(operation)
		sample.illustrate(operation)
		describeLines(operation)
	})
	nameWords(document)
	spellNulls(document)
	openAnswers(document)
}

func eachOperation(document *huma.OpenAPI, visit func(*huma.Operation)) {
	for _, item := range document.Paths {
		for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if operation != nil {
				visit(operation)
			}
		}
	}
}

// spellNulls describes what may be null as anyOf. Huma has a list of types, which
// not every generator knows.
func spellNulls(document *huma.OpenAPI) {
	for _, schema := range document.Components.Schemas.Map() {
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

// openAnswers lets answers get more members without breaking clients that
// check them. Only what clients send is closed, since unknown members in it
// are refused.
func openAnswers(document *huma.OpenAPI) {
	for name, schema := range document.Components.Schemas.Map() {
		if name != reflect.TypeFor[v1.Submission]().Name() {
			schema.AdditionalProperties = nil
		}
	}
}

// describeLines says of text with a JSON value a line that it is text. OpenAPI
// 3.1 has no place for what a line is (3.2 calls it itemSchema), but JSON Schema
// has one for what a text holds.
func describeLines(operation *huma.Operation) {
	describe := func(content map[string]*huma.MediaType) {
		if media := content[mediaLines]; media != nil {
			media.Schema = &huma.Schema{
				Type: huma.TypeString, Description: "One JSON value a line, each of which fits contentSchema.",
				Extensions: map[string]any{"contentMediaType": mediaJSON, "contentSchema": media.Schema},
			}
		}
	}
	if operation.RequestBody != nil {
		describe(operation.RequestBody.Content)
	}
	for _, response := range operation.Responses {
		describe(response.Content)
	}
}

func schemaFor[T any](document *huma.OpenAPI) *huma.Schema {
	return document.Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// serveDocument serves the OpenAPI description. It stands in for huma's own
// routes, which build the document on first use without a lock.
func serveDocument(router chi.Router, document *huma.OpenAPI) {
	serve := func(path, contentType string, render func() ([]byte, error)) {
		rendered := sync.OnceValues(render)
		router.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			text, err := rendered()
			if err != nil {
				writeProblem(w, http.StatusInternalServerError, "the description could not be rendered")
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text)
		})
	}
	serve("/openapi.json", "application/openapi+json", func() ([]byte, error) { return json.Marshal(document) })
	serve("/openapi.yaml", "application/openapi+yaml", document.YAML)
}
