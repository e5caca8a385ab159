package describe

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// rejection is an answer that is not a success.
type rejection struct {
	why     string
	example *v1.Problem
	// headers are what each header of the answer means.
	headers map[string]string
}

// The form of the rate limit headers.
const (
	limitPolicy = `the quota and its window in seconds, such as "jobs";q=6000;w=60.`
	limitLeft   = `what is left, and after how many seconds all of it is back, such as "jobs";r=5999;t=120.`
)

// rejections are those that several operations have in common.
var rejections = map[int]rejection{
	http.StatusBadRequest: {
		why:     "The body is not JSON in UTF-8, is empty, or is nested too deep",
		example: v1.NewProblem(http.StatusBadRequest, "the body is not JSON: unexpected end of JSON input: line 1, column 14"),
	},
	http.StatusUnauthorized: {
		why:     "Credentials are missing or wrong",
		example: v1.NewProblem(http.StatusUnauthorized, "credentials are needed"),
		headers: map[string]string{"WWW-Authenticate": "The accepted schemes, Basic and Bearer."},
	},
	http.StatusForbidden: {
		why:     "The credentials do not allow this, or a page of another site made a browser send the request",
		example: v1.NewProblem(http.StatusForbidden, "the credentials do not allow this: it needs the scope operate"),
	},
	http.StatusNotFound: {
		why:     "There is no such job, or it is another tenant's",
		example: v1.NewProblem(http.StatusNotFound, "no such job"),
	},
	http.StatusMisdirectedRequest: {
		why:     "The id is of another cell than the one that was asked",
		example: v1.NewProblem(http.StatusMisdirectedRequest, "this id is of cell 1, and this is cell 0: ask the proxy, or cell 1"),
		headers: map[string]string{v1.CellHeader: "The cell that answers. Every answer of a cell has this header."},
	},
	http.StatusRequestEntityTooLarge: {
		why:     "The body is too large",
		example: v1.NewProblem(http.StatusRequestEntityTooLarge, "the body is larger than 1048576 bytes"),
	},
	http.StatusUnsupportedMediaType: {
		why:     "The Content-Type is not one that the operation takes",
		example: v1.NewProblem(http.StatusUnsupportedMediaType, "send JSON, with the header Content-Type: application/json and no Content-Encoding"),
	},
	http.StatusUnprocessableEntity: {
		why:     "A value in the request cannot be accepted",
		example: v1.Invalid(v1.Mistake{Location: "query.limit", Message: "not a whole number"}),
	},
	http.StatusTooManyRequests: {
		why:     "A rate limit is reached, or the client sent wrong credentials too often",
		example: v1.NewProblem(http.StatusTooManyRequests, "the rate limit is reached"),
		headers: map[string]string{
			"Retry-After":      "Try again after so many seconds.",
			"RateLimit-Policy": "The limit, if it is reached: " + limitPolicy, "RateLimit": "What the caller has left then: " + limitLeft,
		},
	},
	http.StatusServiceUnavailable: {
		why:     "The database is not available. You can repeat the request",
		example: v1.NewProblem(http.StatusServiceUnavailable, "the database is not available; try again"),
		headers: map[string]string{"Retry-After": "Try again after so many seconds."},
	},
}

// alwaysPossible are the rejections of every operation. 422 is among them because
// each refuses unknown parameters.
var alwaysPossible = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity,
	http.StatusTooManyRequests, http.StatusServiceUnavailable,
}

// anyOther is the name of the answer for every other status.
const anyOther = "Other"

func nameOf(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// shareRejections adds the answers that several operations have in common to the
// components, where each operation can refer to them.
func (d describer) shareRejections() {
	d.Components.Responses = map[string]*huma.Response{}
	for status, shared := range rejections {
		d.Components.Responses[nameOf(status)] = d.rejection(shared)
	}
	d.Components.Responses[anyOther] = d.rejection(rejection{
		why: "Anything else: the request is too long (414, 431) or too slow (408), or the server has a defect (500)",
	})
}

func (d describer) rejection(r rejection) *huma.Response {
	media := &huma.MediaType{Schema: d.schemaOf(v1.Problem{})}
	if r.example != nil {
		media.Example = r.example
	}
	response := &huma.Response{Description: r.why, Content: map[string]*huma.MediaType{v1.ProblemMedia: media}}
	for name, purpose := range r.headers {
		describeHeader(response, name, purpose)
	}
	return response
}

// describeRejections adds the rejections of an operation: those of all operations,
// those that its parameters and body can cause, and its own.
func (d describer) describeRejections(o *huma.Operation, own map[int]rejection) {
	shared := slices.Clone(alwaysPossible)
	if o.RequestBody != nil {
		shared = append(shared, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if slices.ContainsFunc(o.Parameters, func(p *huma.Param) bool { return p.In == "path" && p.Name == "id" }) {
		shared = append(shared, http.StatusNotFound, http.StatusMisdirectedRequest)
	}
	for _, status := range shared {
		o.Responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + nameOf(status)}
	}
	o.Responses["default"] = &huma.Response{Ref: "#/components/responses/" + anyOther}
	for status, particular := range own {
		o.Responses[strconv.Itoa(status)] = d.rejection(particular)
	}
}

func describeHeader(response *huma.Response, name, purpose string) {
	if response.Headers == nil {
		response.Headers = map[string]*huma.Header{}
	}
	response.Headers[name] = &huma.Header{Description: purpose, Schema: &huma.Schema{Type: huma.TypeString}}
}
