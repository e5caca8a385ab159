package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestACallReachesTheAPIAsItIs(t *testing.T) {
	var got *http.Request
	var body string
	c := client.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
		_, _ = w.Write([]byte(`{"jobId":"x","result":12345678901234567890.10}`))
	}))
	var into struct{ Result json.RawMessage }
	ctx := t.Context()
	require.NoError(t, c.Call(ctx, client.Request{
		Method: "POST", Path: client.Path("jobs", "a/b?c ü", "cancel"), Query: url.Values{"q": {"x&y"}},
		Header: http.Header{"Idempotency-Key": {"k"}}, Body: json.RawMessage(`{ "n": 1.0 }`),
	}, &into))
	require.Equal(t, "/jobs/a%2Fb%3Fc%20%C3%BC/cancel", got.URL.EscapedPath())
	require.Equal(t, "x&y", got.URL.Query().Get("q"))
	require.Equal(t, `{ "n": 1.0 }`, body, "to the letter")
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "k", got.Header.Get("Idempotency-Key"))
	require.Equal(t, "12345678901234567890.10", string(into.Result))
}

func TestARefusalIsAProblem(t *testing.T) {
	answer := func(media, body string, status int) *client.Client {
		return client.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
	}
	err := answer(v1.ProblemMedia, `{"title":"Conflict","status":409,"detail":"no","errors":[{"location":"#/a","message":"bad"}]}`, 409).
		Get(t.Context(), "/jobs", nil, nil)
	require.Equal(t, v1.NewProblem(409, "no", v1.Mistake{Location: "#/a", Message: "bad"}), client.ProblemOf(err))
	require.Equal(t, "GET /jobs: no", err.Error())

	err = answer("text/plain", "secret", 500).Get(t.Context(), "/jobs", nil, nil)
	require.Equal(t, "Internal Server Error", client.ProblemOf(err).Detail)
	require.Nil(t, client.ProblemOf(answer("application/json", "{", 200).Get(t.Context(), "/jobs", nil, &struct{}{})))
}

// The API takes a write that fails for a client that has left, and panics.
func TestAnAnswerThatIsTooLongFailsAtItsEnd(t *testing.T) {
	c := client.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 40 {
			n, err := w.Write([]byte(strings.Repeat("x", 1<<20)))
			require.NoError(t, err)
			require.Equal(t, 1<<20, n)
		}
	}))
	require.ErrorContains(t, c.Get(t.Context(), "/jobs", nil, nil), "more than 32 MiB")
}
