package api

import (
	"encoding/json"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// sample is one operation shown by example. Its requests are sent to a real
// server by a test, so what they name must be there or be made there.
type sample struct {
	requests []sampleRequest
	answers  []sampleAnswer
	// counted says that a rate limit counts the requests.
	counted bool
	// rejections are those that the operation does not share with others.
	rejections map[int]rejection
}

// sampleRequest is a body. It is text, for the order of its members and for
// formats that are no JSON.
type sampleRequest struct {
	name    string
	summary string
	media   string
	body    string
}

// sampleAnswer is a success. Its body is text when the media type is.
type sampleAnswer struct {
	status int
	media  string
	body   any
}

// illustrate puts the examples where readers find them.
func (s sample) illustrate(operation *huma.Operation) {
	for _, request := range s.requests {
		media := operation.RequestBody.Content[request.media]
		if media.Examples == nil {
			media.Examples = map[string]*huma.Example{}
		}
		media.Examples[request.name] = &huma.Example{Summary: request.summary, Value: bodyOf(request.media, request.body)}
	}
	for _, answer := range s.answers {
		response := operation.Responses[strconv.Itoa(answer.status)]
		response.Content[answer.media].Example = answer.body
	}
	for status, response := range operation.Responses {
		if s.counted && status[0] == '2' {
			describeHeader(response, "RateLimit-Policy", "The limit that counts the request: "+limitPolicy)
			describeHeader(response, "RateLimit", "How the caller stands: "+limitLeft)
		}
	}
}

func bodyOf(media, text string) any {
	if media == mediaJSON {
		return json.RawMessage(text)
	}
	return text
}

// sampleParameters are examples of parameters, which mean the same in every
// operation.
var sampleParameters = map[string]any{
	"id":              sampleID,
	"type":            "SLEEP_JOB",
	"jobType":         "SLEEP_JOB",
	"tenant":          "default",
	"tag":             "nightly",
	"status":          []string{"PENDING", "RUNNING"},
	"createdFrom":     "2026-02-20T00:00:00Z",
	"createdBefore":   "2100-01-01T00:00:00Z",
	"limit":           50,
	"cursor":          sampleCursor,
	"wait":            "1s",
	"sinceMinutes":    15,
	"attempt":         1,
	"name":            "builtin",
	"force":           false,
	"atomic":          true,
	"Idempotency-Key": "order-4711",
}

// describeParameters adds the examples and that no parameter may be empty, and
// leaves out what huma says twice.
func describeParameters(operation *huma.Operation) {
	least := 1
	for _, parameter := range operation.Parameters {
		parameter.Example = sampleParameters[parameter.Name]
		parameter.Schema.Description = ""
		if parameter.Schema.Type == huma.TypeString && parameter.Schema.Format == "" {
			parameter.Schema.MinLength = &least
		}
	}
	for _, response := range operation.Responses {
		delete(response.Headers, "Content-Type") // which stands beside the body
		for _, header := range response.Headers {
			if header.Description == "" {
				header.Description, header.Schema.Description = header.Schema.Description, ""
			}
		}
	}
}
