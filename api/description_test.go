package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// description is the OpenAPI document as the tests need it.
type description struct {
	operations map[string]describedOperation
	chapters   []string
	document   any
	compiled   sync.Map
}

type describedOperation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []struct {
		In, Name, Description string
		Example               any
		Schema                any
	}
	RequestBody struct{ Content map[string]mediaType }
	Responses   map[string]describedAnswer
}

type describedAnswer struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]mediaType
}

type mediaType struct {
	Schema   any
	Example  any
	Examples map[string]struct{ Value any }
}

// documentName is the base of references within the document.
const documentName = "https://test.invalid/openapi.json"

var readDescription = sync.OnceValues(func() (*description, error) {
	text := generated().json
	var document struct {
		Paths      map[string]map[string]describedOperation
		Tags       []struct{ Name string }
		Components struct{ Responses map[string]describedAnswer }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	d := &description{operations: map[string]describedOperation{}}
	for path, methods := range document.Paths {
		for method, o := range methods {
			for status, answer := range o.Responses {
				if name, shared := strings.CutPrefix(answer.Ref, "#/components/responses/"); shared {
					o.Responses[status] = document.Components.Responses[name]
				}
			}
			d.operations[strings.ToUpper(method)+" "+path] = o
		}
	}
	for _, tag := range document.Tags {
		d.chapters = append(d.chapters, tag.Name)
	}
	var err error
	d.document, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	closeSchemas(d.document)
	return d, err
})

// closeSchemas refuses members that are not described. Clients must ignore such
// members, but the server must not send them.
func closeSchemas(document any) {
	components := document.(map[string]any)["components"].(map[string]any)
	for _, schema := range components["schemas"].(map[string]any) {
		schema.(map[string]any)["additionalProperties"] = false // does not apply to text
	}
}

func described(t testing.TB) *description {
	t.Helper()
	d, err := readDescription()
	require.NoError(t, err)
	return d
}

// requireFit checks that a text matches the schema of its media type.
func (d *description) requireFit(t testing.TB, what, media string, described mediaType, text []byte) {
	t.Helper()
	check := func(schema any, text []byte) {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err, "%s: %s", what, text)
		compiled, err := d.compile(schema)
		require.NoError(t, err)
		require.NoError(t, compiled.Validate(value), "%s: %s", what, text)
	}
	switch {
	case line(described) != nil:
		for text := range bytes.Lines(text) {
			check(line(described), text)
		}
	case strings.HasSuffix(media, "json"):
		check(described.Schema, text)
	}
}

// line is the schema of each line; nil if the text has no lines.
func line(media mediaType) any {
	schema, _ := media.Schema.(map[string]any)
	return schema["contentSchema"]
}

// compile makes a schema of a part of the document.
func (d *description) compile(part any) (*jsonschema.Schema, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, err
	}
	if known, found := d.compiled.Load(string(text)); found {
		return known.(*jsonschema.Schema), nil
	}
	const name = "https://test.invalid/part.json"
	whole := bytes.ReplaceAll(text, []byte(`"#/`), []byte(`"`+documentName+`#/`))
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(whole))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := errors.Join(compiler.AddResource(documentName, d.document), compiler.AddResource(name, schema)); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	d.compiled.Store(string(text), compiled)
	return compiled, nil
}

// of returns the operation that serves a request.
func (d *description) of(r *http.Request) (route string, o describedOperation, found bool) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	steps := strings.Split(r.URL.EscapedPath(), "/")
	best := ""
	for route := range d.operations {
		its, path, _ := strings.Cut(route, " ")
		template := strings.Split(path, "/")
		fits := its == method && len(template) == len(steps)
		for i := 0; fits && i < len(steps); i++ {
			fits = template[i] == steps[i] || strings.HasPrefix(template[i], "{")
		}
		// A fixed segment of a path matches before a parameter.
		if fits && (best == "" || strings.Contains(best, "{")) {
			best = route
		}
	}
	o, found = d.operations[best]
	return best, o, found
}

// byDefault are the statuses that only the description's default response covers.
var byDefault = []int{http.StatusRequestTimeout, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError}

// documented checks recorded answers against the description.
func documented(t testing.TB, h http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		answer, recorded := w.(*httptest.ResponseRecorder)
		if !recorded {
			return
		}
		d := described(t)
		route, o, found := d.of(r)
		if !found || r.Method == http.MethodHead {
			return
		}
		status := strconv.Itoa(answer.Code)
		response, there := o.Responses[status]
		if !there {
			require.Contains(t, byDefault, answer.Code, "%s is not described as answering this: see rejections in test/describe", route)
			response = o.Responses["default"]
		}
		media, _, err := mime.ParseMediaType(answer.Header().Get("Content-Type"))
		require.NoError(t, err, route)
		body, there := response.Content[media]
		require.True(t, there, "%s is not described as answering %s with %s", route, status, media)
		d.requireFit(t, route+": answer "+status, media, body, answer.Body.Bytes())
	})
}

func TestRequestsAreMatchedWithTheirOperations(t *testing.T) {
	d := described(t)
	for request, want := range map[string]string{
		"GET /jobs":                "GET /jobs",
		"HEAD /jobs":               "GET /jobs",
		"GET " + known:             "GET /jobs/{id}",
		"POST /jobs/batch":         "POST /jobs/batch",
		"GET /job-types/a%2Fb":     "GET /job-types/{type}",
		"GET /job-types/x/schema":  "GET /job-types/{type}/schema",
		"GET /debug/workers":       "GET /debug/workers",
		"POST " + known + "/hold":  "POST /jobs/{id}/hold",
		"DELETE /jobs":             "",
		"GET /nothing":             "",
		"GET /jobs/a/b/c":          "",
		"GET /debug/workers/other": "",
	} {
		method, path, _ := strings.Cut(request, " ")
		route, _, _ := d.of(httptest.NewRequest(method, path, nil))
		require.Equal(t, want, route, request)
	}
}
