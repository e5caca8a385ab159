package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestLimitIsClamped(t *testing.T) {
	for query, want := range map[string]int{
		"": 100, "?limit=1": 1, "?limit=0": 1, "?limit=-0": 1, "?limit=-5": 1, "?limit=1000": 1000,
		"?limit=1001": 1000, "?limit=99999999999999999999999": 1000, "?limit=-99999999999999999999999": 1, "?limit=007": 7,
	} {
		for _, route := range []string{"POST /dead-letter/retry", "GET /dead-letter", "GET /jobs"} {
			l := newLedger()
			method, path, _ := strings.Cut(route, " ")
			require.Equal(t, 200, send(newAPI(t, l), method, path+query, "").Code, query)
			asked := want
			if route == "GET /dead-letter" {
				asked++ // one more, to see whether another page follows.
			}
			require.Equal(t, asked, l.limit, route+query)
		}
	}
	for _, query := range []string{"?limit=", "?limit", "?limit=&limit=1", "?limit=%20", "?limit=ten", "?limit=1.0", "?limit=%2B5", "?limit=-", "?limit=0x10", "?limit=%D9%A1"} {
		for _, route := range []string{"POST /dead-letter/retry", "GET /dead-letter", "GET /jobs"} {
			l := newLedger()
			method, path, _ := strings.Cut(route, " ")
			answer := send(newAPI(t, l), method, path+query, "")
			require.Equal(t, 422, answer.Code, route+query)
			require.Contains(t, answer.Body.String(), `"query.limit"`, route+query)
			require.Zero(t, l.limit, "nothing was done")
		}
	}
}

func TestContentTypeDoesNotFollowTheWishOfTheClient(t *testing.T) {
	for _, accept := range []string{"json", "application/problem+json", "text/html", "*/*", "application/cbor"} {
		h := newAPI(t, newLedger())
		require.Equal(t, "application/json",
			send(h, "POST", "/jobs", minimal, "Accept: "+accept).Header().Get("Content-Type"), accept)
		require.Equal(t, "application/problem+json",
			send(h, "GET", unknown, "", "Accept: "+accept).Header().Get("Content-Type"), accept)
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	server := httptest.NewServer(newAPI(t, newLedger()))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/healthz", nil)
	require.NoError(t, err)
	answer, err := server.Client().Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	require.Equal(t, 200, answer.StatusCode)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Empty(t, body)
}

func TestReadyAnswersInTimeWhenTheDatabaseDoesNot(t *testing.T) {
	l := newLedger()
	l.fails = io.ErrUnexpectedEOF
	began := time.Now()
	require.Equal(t, 503, send(newAPI(t, l), "GET", "/readyz", "").Code)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestAPanicIsLoggedAndNotShown(t *testing.T) {
	var log bytes.Buffer
	l := newLedger()
	l.panics = "secret detail"
	h := api.New(api.Config{
		Jobs: l, Log: slog.New(slog.NewJSONHandler(&log, nil)), Version: "test",
		MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: api.DefaultRequestTimeout,
	})
	answer := send(h, "GET", known, "")
	require.Equal(t, 500, answer.Code)
	require.NotContains(t, answer.Body.String(), "secret")
	require.Contains(t, log.String(), "secret detail")
	require.Contains(t, log.String(), "ledger_test.go", "the stack is logged")
}

func TestDescriptionMatchesTheDecoder(t *testing.T) {
	h := newAPI(t, newLedger())
	answer := send(h, "GET", "/openapi.json", "")
	require.Equal(t, 200, answer.Code)
	var document struct {
		OpenAPI    string
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Required   []string
			}
		}
	}
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &document))
	require.Equal(t, "3.1.0", document.OpenAPI)
	for _, path := range []string{"/jobs", "/jobs/{id}", "/jobs/{id}/cancel", "/jobs/{id}/release", "/jobs/{id}/requeue", "/dead-letter", "/dead-letter/retry"} {
		require.Contains(t, document.Paths, path)
	}
	submission := document.Components.Schemas["Submission"]
	require.Equal(t, []string{"jobType"}, submission.Required)
	require.Len(t, submission.Properties, reflect.TypeFor[v1.Submission]().NumField())
	for member := range submission.Properties {
		refused := send(h, "POST", "/jobs", `{"jobType":"A",`+`"`+member+`":{}}`)
		require.NotContains(t, refused.Body.String(), "is not known", member)
	}
	yaml := send(h, "GET", "/openapi.yaml", "")
	require.Equal(t, 200, yaml.Code)
	require.Contains(t, yaml.Body.String(), "openapi: 3.1.0")
}

func TestAllowNamesTheMethodsOfThePath(t *testing.T) {
	for path, allowed := range map[string]string{"/jobs": "GET, HEAD, POST, PATCH", known: "GET, HEAD, PATCH", known + "/cancel": "POST", "/readyz": "GET, HEAD"} {
		answer := send(newAPI(t, newLedger()), "PUT", path, "")
		require.Equal(t, 405, answer.Code, path)
		require.Equal(t, allowed, answer.Header().Get("Allow"), path)
	}
}

func FuzzSubmit(f *testing.F) {
	for _, seed := range []string{
		minimal, `{}`, `[]`, `null`, `""`, `0`, ``, " ", "\xef\xbb\xbf{}", `{"jobType":"A","payload":"\ud800\u0000"}`,
		`{"jobType":"A","tags":["x"],"delay":"1s","timeout":"1m","runAt":"2030-01-01T00:00:00Z","hold":false}`,
		`{"jobType":"A","payload":{"id":[1e2]},"concurrencyKey":"a:b","concurrencyLimit":1,"onConflict":"queue","ttl":"1h","uniqueFor":"1m","uniqueBy":["/id/0",""]}`,
		strings.Repeat(`{"payload":`, 200), `{"jobType":"A"}{`, `{"a":1,"a":2}`, `{"jobType":"\udc00"}`, `{"":""}`,
	} {
		f.Add([]byte(seed), "key")
	}
	l := newLedger()
	h := undocumented(l)
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		l.forget()
		answer := send(h, "POST", "/jobs", string(body), "Idempotency-Key: "+key, "Content-Type: application/json")
		require.Less(t, answer.Code, 500)
		require.True(t, json.Valid(answer.Body.Bytes()))
		if answer.Code == 202 {
			require.Len(t, l.submitted, 1)
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(body, &members))
			if members["payload"] == nil {
				members["payload"] = json.RawMessage("null")
			}
			require.Equal(t, string(members["payload"]), string(l.submitted[0].Payload), "unchanged")
			var jobType string
			require.NoError(t, json.Unmarshal(members["jobType"], &jobType))
			require.Equal(t, jobType, l.submitted[0].Type)
			return
		}
		require.Empty(t, l.submitted)
		require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
	})
}
