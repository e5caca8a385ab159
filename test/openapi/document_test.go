package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/stretchr/testify/require"
)

// servedDocument is the description that the server serves.
var servedDocument = sync.OnceValues(func() ([]byte, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.url+"/openapi.json", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	return io.ReadAll(answer.Body)
})

func document(t *testing.T) []byte {
	t.Helper()
	text, err := servedDocument()
	require.NoError(t, err)
	return text
}

// strictValidator checks requests and answers against the description. Clients ignore
// members that are not described; here they are mistakes.
var strictValidator = sync.OnceValues(func() (validator.Validator, error) {
	text, err := servedDocument()
	if err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	for _, schema := range whole["components"].(map[string]any)["schemas"].(map[string]any) {
		if schema := schema.(map[string]any); schema["properties"] != nil {
			schema["additionalProperties"] = false
		}
	}
	closed, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return newValidator(closed)
})

func newValidator(text []byte) (validator.Validator, error) {
	parsed, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, err
	}
	made, errs := validator.NewValidator(parsed, config.WithFormatAssertions())
	return made, errors.Join(errs...)
}

// libopenapi contains the JSON Schema that the OpenAPI Initiative publishes for 3.1.
func TestTheDescriptionIsValidByTheOfficialSchema(t *testing.T) {
	official, err := newValidator(document(t))
	require.NoError(t, err)
	ok, errs := official.ValidateDocument()
	for _, e := range errs {
		t.Log(e.Error())
	}
	require.True(t, ok)
}

// kin-openapi checks what a schema cannot, such as that references resolve and examples
// fit.
func TestTheDescriptionIsValidByItsMeaning(t *testing.T) {
	parsed, err := openapi3.NewLoader().LoadFromData(document(t))
	require.NoError(t, err)
	require.NoError(t, parsed.Validate(t.Context()))
}

// described is the part of the description that these tests read.
type described struct {
	Paths map[string]map[string]operation
}

type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct {
		Name, In string
		Example  any
	}
	RequestBody struct {
		Content map[string]struct {
			Examples map[string]struct{ Value any }
		}
	}
	Responses map[string]any
	Security  []map[string]any
}

// operations returns the operations of the description, by "METHOD /path".
func operations(t *testing.T) map[string]operation {
	t.Helper()
	var read described
	require.NoError(t, json.Unmarshal(document(t), &read))
	found := map[string]operation{}
	for path, methods := range read.Paths {
		for method, o := range methods {
			found[strings.ToUpper(method)+" "+path] = o
		}
	}
	require.NotEmpty(t, found)
	return found
}
