// Package describe completes the OpenAPI description of the API. The code of the API
// knows its routes, parameters and schemas; here is what each operation is for, and an
// example of each body. A test of the API writes the result to api/openapi.yaml, which
// the server serves.
package describe

import (
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// about introduces the API.
const about = `Durable background jobs: submit over HTTP, run at least once.

A job is recorded before its submission is acknowledged, and a handler executes it later. You can safely repeat every
request; a submission needs an idempotency key for that.

Times are RFC 3339 in UTC. Durations are numbers of seconds in answers, and Go durations such as "1m30s" in requests.
Answers may get more members over time: ignore those that you do not know.`

var chapters = []*huma.Tag{
	{Name: "Jobs", Description: "Submit jobs, see what became of them, and cancel, hold or release them."},
	{Name: "Workflows", Description: "Submit jobs that come after one another, and see, cancel, hold or release them as a whole."},
	{Name: "Job types", Description: "What you can submit, and what its payload must look like."},
	{Name: "Schedules", Description: "Make jobs by the clock: when, whose next run is when, and what became of the last."},
	{Name: "Dead letters", Description: "Jobs that failed for good, and how to requeue them."},
	{Name: "Operation", Description: "The state of the whole system, for those who run it."},
}

// API completes a document that has every operation. It describes a server with the
// default access.
func API(document *huma.OpenAPI) {
	document.Info.Title, document.Info.Version = "Holdfast", "development"
	document.Info.Description = about
	document.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	document.Servers = []*huma.Server{{URL: "/", Description: "The server that sent this description."}}
	document.Tags = chapters
	document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"basic":  {Type: "http", Scheme: "basic", Description: "The operator: every scope, for every tenant."},
		"bearer": {Type: "http", Scheme: "bearer", Description: "A token, with scopes of its own, and perhaps for one tenant."},
	}
	d := describer{document}
	d.shareRejections()
	d.eachOperation(func(o *huma.Operation) {
		about, scope := aboutOperation(o.OperationID), o.Extensions["x-scope"].(guard.Scope)
		o.Summary, o.Tags = about.summary, []string{about.chapter}
		o.Description = about.description + "\n\n" + needs(o)
		o.Security = []map[string][]string{{"basic": {}}, {"bearer": {}}}
		if scope.IsOpen() {
			o.Security = append(o.Security, map[string][]string{})
		}
		d.describeRequests(o, about)
		d.describeAnswers(o, about)
		d.describeRejections(o, about.rejections)
		describeParameters(o)
	})
	d.nameWords()
	d.boundItems()
	d.spellNulls()
	d.openAnswers()
}

// needs says which scopes an operation needs.
func needs(o *huma.Operation) string {
	text := fmt.Sprintf("Needs the scope %s", o.Extensions["x-scope"])
	if also, ok := o.Extensions["x-also-scope"]; ok {
		text = fmt.Sprintf("Needs the scopes %s and %s", o.Extensions["x-scope"], also)
	}
	return text + "."
}

// describeRequests describes the bodies, which the server reads without huma.
func (d describer) describeRequests(o *huma.Operation, about operation) {
	takes := about.takes
	if takes == nil {
		takes = v1.Submission{}
	}
	for _, r := range about.requests {
		if o.RequestBody == nil {
			o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		}
		media := o.RequestBody.Content[r.media]
		if media == nil {
			one := d.schemaOf(takes)
			media = &huma.MediaType{Schema: one, Examples: map[string]*huma.Example{}}
			switch {
			case r.media == mediaLines:
				media.Schema = linesOf(one)
			case r.isArray:
				media.Schema = &huma.Schema{Type: huma.TypeArray, Items: one}
			}
			o.RequestBody.Content[r.media] = media
		}
		media.Examples[r.name] = &huma.Example{Summary: r.summary, Value: r.value()}
	}
}

// describeAnswers describes the successes.
func (d describer) describeAnswers(o *huma.Operation, about operation) {
	described := map[string]bool{}
	for _, a := range about.answers {
		status := strconv.Itoa(a.status)
		response := o.Responses[status]
		if response == nil {
			response = &huma.Response{}
			o.Responses[status] = response
		}
		if !described[status] {
			response.Content = map[string]*huma.MediaType{}
			described[status] = true
		}
		if a.says != "" {
			response.Description = a.says
		}
		response.Content[a.media] = &huma.MediaType{Schema: a.schema(d), Example: a.example()}
		delete(response.Headers, "Content-Type") // It is shown beside the body.
		for _, header := range response.Headers {
			if header.Description == "" {
				header.Description, header.Schema.Description = header.Schema.Description, ""
			}
		}
		if o.Metadata["stale"] == true {
			describeHeader(response, "X-Holdfast-Age", "How old the answer is at most, in seconds, if it comes from a replica of the database. Absent if the answer is current, as with Cache-Control: no-cache.")
		}
		if a.varies {
			describeHeader(response, "Vary", "Accept.")
		}
		if about.counted {
			describeHeader(response, "RateLimit-Policy", "The limit that counts the request: "+limitPolicy)
			describeHeader(response, "RateLimit", "What the caller has left: "+limitLeft)
		}
	}
}
