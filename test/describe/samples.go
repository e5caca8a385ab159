package describe

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// operation is the description of one operation. A test sends the requests to a real
// server, so the objects that they name must exist there or be made by the test.
type operation struct {
	chapter     string
	summary     string
	description string
	requests    []request
	// takes is a value of the type of the bodies; nil for a submission.
	takes   any
	answers []answer
	// counted says that the requests count against a rate limit.
	counted bool
	// rejections are those that only this operation has.
	rejections map[int]rejection
}

// request is an example of a body. It is text, to keep the order of its members.
type request struct {
	name, summary string
	media         string
	isArray       bool
	body          string
}

func (r request) value() any {
	if r.media == mediaJSON || r.media == mediaPatch {
		return json.RawMessage(r.body)
	}
	return r.body
}

// answer is a success. The type of its body is its schema.
type answer struct {
	status int
	media  string
	body   any
	// says is the meaning of the answer; empty if its status is enough.
	says string
	// varies says that the Accept header chooses among several media types.
	varies bool
}

// lines are the values of a body with one a line.
type lines []any

func (a answer) schema(d describer) *huma.Schema {
	switch body := a.body.(type) {
	case string:
		return &huma.Schema{Type: huma.TypeString}
	case json.RawMessage:
		return &huma.Schema{Type: huma.TypeObject}
	case lines:
		var types []*huma.Schema
		for i, value := range body {
			if !slices.ContainsFunc(body[:i], func(v any) bool { return reflect.TypeOf(v) == reflect.TypeOf(value) }) {
				types = append(types, d.schemaOf(value))
			}
		}
		if len(types) == 1 {
			return linesOf(types[0])
		}
		return linesOf(&huma.Schema{OneOf: types})
	}
	return d.schemaOf(a.body)
}

func (a answer) example() any {
	values, ok := a.body.(lines)
	if !ok {
		return a.body
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, value := range values {
		_ = encoder.Encode(value) // A strings.Builder never fails.
	}
	return text.String()
}

// with returns the answers of an operation that has only one.
func with(body any) []answer { return []answer{{status: http.StatusOK, media: mediaJSON, body: body}} }

// sampleParameters are examples of parameters, which mean the same in every
// operation. Those of state are its values, which differ between jobs and workflows.
var sampleParameters = map[string]any{
	"id":                sampleID,
	"type":              "SLEEP_JOB",
	"jobType":           "SLEEP_JOB",
	"lastEventId":       41,
	"Last-Event-ID":     "41",
	"tenant":            "default",
	"tag":               "nightly",
	"window":            "1h",
	"parentId":          sampleParentID,
	"root":              true,
	"depth":             10,
	"status":            []string{"PENDING", "RUNNING"},
	"createdFrom":       "2026-02-20T00:00:00Z",
	"createdBefore":     "2100-01-01T00:00:00Z",
	"limit":             50,
	"cursor":            sampleCursor,
	"wait":              "1s",
	"errorCode":         "451",
	"q":                 "order-4711",
	"payload":           "user@example.com",
	"fingerprint":       sampleFingerprint,
	"sinceMinutes":      15,
	"dryRun":            true,
	"attempt":           1,
	"name":              "builtin",
	"scope":             "type",
	"worker":            sampleWorkerID,
	"plugin":            "builtin",
	"event":             job.PluginPromoted,
	"before":            "2100-01-01T00:00:00Z",
	"force":             false,
	"unfinished":        true,
	"atomic":            true,
	"schedule":          sampleSchedule.Name,
	"after":             "2030-01-31T12:00:00Z",
	"Idempotency-Key":   "order-4711",
	"actor":             "token shop",
	"action":            "job.requeue",
	"jobId":             sampleID,
	"from":              "2026-02-20T00:00:00Z",
	"X-Holdfast-Reason": "the bank is back",
}

// describeParameters adds examples, and the rule that no parameter may be empty. It
// removes texts that huma repeats.
func describeParameters(o *huma.Operation) {
	least := 1
	for _, parameter := range o.Parameters {
		parameter.Example = sampleParameters[parameter.Name]
		if items := parameter.Schema.Items; parameter.Name == "state" && items != nil {
			parameter.Example = items.Enum[:1]
		}
		parameter.Schema.Description = ""
		if parameter.Schema.Type == huma.TypeString && parameter.Schema.Format == "" {
			parameter.Schema.MinLength = &least
		}
	}
}

// sampleEvents is the beginning of a stream of events.
const sampleEvents = `id: 42
event: job.succeeded
data: {"jobId":"0199c0de-0000-7000-8000-000000000001","jobType":"SLEEP_JOB","tenant":"default","tags":[],"status":"COMPLETED","at":"2026-02-20T01:02:03Z"}

`
