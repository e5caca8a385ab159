package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// rejection is an answer that is not a success.
type rejection struct {
	why     string
	example *v1.Problem
	// headers say what each header of the answer is for.
	headers map[string]string
}

// What the headers about rate limits look like.
const (
	limitPolicy = `the most that is allowed in so many seconds, such as "jobs";q=6000;w=60.`
	limitLeft   = `what is left, and in how many seconds it is whole again, such as "jobs";r=5999;t=120.`
)

// rejections are those that several operations have in common.
var rejections = map[int]rejection{
	http.StatusBadRequest: {
		why:     "The body is not JSON in UTF-8, is empty, or is nested too deep",
		example: problem(http.StatusBadRequest, "the body is not JSON: unexpected end of JSON input: line 1, column 14"),
	},
	http.StatusUnauthorized: {
		why:     "Credentials are needed, or those shown are wrong",
		example: problem(http.StatusUnauthorized, "credentials are needed"),
		headers: map[string]string{"WWW-Authenticate": "The schemes that are understood, Basic and Bearer."},
	},
	http.StatusForbidden: {
		why:     "The credentials are not for this, or a page of another site made a browser send the request",
		example: problem(http.StatusForbidden, "the credentials do not allow this"),
	},
	http.StatusNotFound: {
		why:     "There is no such job, or it is another tenant's",
		example: problem(http.StatusNotFound, "no such job"),
	},
	http.StatusConflict: { // each operation says why
		example: problem(http.StatusConflict, "the job's state does not allow this"),
	},
	http.StatusRequestEntityTooLarge: {
		why:     "The body is too large",
		example: problem(http.StatusRequestEntityTooLarge, "the body is larger than 1048576 bytes"),
	},
	http.StatusUnsupportedMediaType: {
		why:     "The body is not declared to be what the operation takes",
		example: problem(http.StatusUnsupportedMediaType, "send JSON, with the header Content-Type: application/json and no Content-Encoding"),
	},
	http.StatusUnprocessableEntity: {
		why:     "The request was understood, but a value in it cannot be accepted",
		example: invalid(at("query.limit", "not a whole number")),
	},
	http.StatusTooManyRequests: {
		why:     "A rate limit is reached, or there were too many wrong credentials",
		example: problem(http.StatusTooManyRequests, "the rate limit is reached"),
		headers: map[string]string{
			"Retry-After":      "After how many seconds to try again.",
			"RateLimit-Policy": "The limit, when it is reached: " + limitPolicy, "RateLimit": "How the caller stands then: " + limitLeft,
		},
	},
	http.StatusServiceUnavailable: {
		why:     "The database is not available; the request can be repeated",
		example: problem(http.StatusServiceUnavailable, "the database is not available; try again"),
		headers: map[string]string{"Retry-After": "After how many seconds to try again."},
	},
}

// alwaysPossible are the rejections that every operation has: none takes a
// parameter that it does not know.
var alwaysPossible = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity,
	http.StatusTooManyRequests, http.StatusServiceUnavailable,
}

// shareRejections puts what several operations have in common where each can
// refer to it.
func shareRejections(document *huma.OpenAPI) {
	document.Components.Responses = map[string]*huma.Response{}
	for status, shared := range rejections {
		if shared.why == "" {
			continue
		}
		document.Components.Responses[nameOf(status)] = shared.describe(document)
	}
	document.Components.Responses[anyOther] = rejection{
		why: "Anything else: the request is too long (414, 431) or comes too slowly (408), or has met a defect (500)",
	}.describe(document)
}

// anyOther is the name of the answer that no operation is particular about.
const anyOther = "Other"

func nameOf(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

func (r rejection) describe(document *huma.OpenAPI) *huma.Response {
	media := &huma.MediaType{Schema: schemaFor[v1.Problem](document)}
	if r.example != nil {
		media.Example = r.example
	}
	response := &huma.Response{Description: r.why, Content: map[string]*huma.MediaType{v1.ProblemMedia: media}}
	for name, purpose := range r.headers {
		describeHeader(response, name, purpose)
	}
	return response
}

// describeRejections adds what an operation can refuse: whoever calls it, what
// it takes, and what is its own.
func describeRejections(document *huma.OpenAPI, operation *huma.Operation, own map[int]rejection) {
	share := func(as, name string) {
		operation.Responses[as] = &huma.Response{Ref: "#/components/responses/" + name}
	}
	for _, status := range commonRejections(operation) {
		share(strconv.Itoa(status), nameOf(status))
	}
	share("default", anyOther)
	for status, particular := range own {
		operation.Responses[strconv.Itoa(status)] = particular.describe(document)
	}
}

func commonRejections(operation *huma.Operation) []int {
	statuses := append([]int{}, alwaysPossible...)
	if operation.RequestBody != nil {
		statuses = append(statuses, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	for _, parameter := range operation.Parameters {
		if parameter.In == "path" && parameter.Name == "id" {
			statuses = append(statuses, http.StatusNotFound)
		}
	}
	return statuses
}

func describeHeader(response *huma.Response, name, purpose string) {
	if response.Headers == nil {
		response.Headers = map[string]*huma.Header{}
	}
	response.Headers[name] = &huma.Header{Description: purpose, Schema: &huma.Schema{Type: huma.TypeString}}
}
