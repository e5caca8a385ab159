package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEveryRequestIsObservedByItsRouteNotByItsPath(t *testing.T) {
	l := newLedger()
	jobIn(job.Queued)(l)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/healthz", "", "/healthz GET 200"},
		{"HEAD", "/healthz", "", "/healthz HEAD 200"},
		{"GET", known, "", "/jobs/{id} GET 200"},
		{"GET", unknown, "", "/jobs/{id} GET 404"},
		{"POST", "/jobs", minimal, "/jobs POST 202"},
		{"POST", "/jobs", "{", "/jobs POST 400"},
		{"GET", "/made/up/by/a/client", "", " GET 404"},
		{"DELETE", "/healthz", "", " DELETE 405"},
	} {
		var seen []string
		h := api.New(api.Config{
			Jobs: l, Log: slog.New(slog.DiscardHandler), Version: "test",
			MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: api.DefaultRequestTimeout,
			Observe: func(route, method string, status int, took time.Duration) {
				require.Positive(t, took)
				seen = append(seen, fmt.Sprintf("%s %s %d", route, method, status))
			},
		})
		send(h, c.method, c.path, c.body)
		require.Equal(t, []string{c.want}, seen, c.path)
	}
}

// A client that leaves during the answer is counted like any other.
func TestAnAnswerThatIsBrokenOffIsObserved(t *testing.T) {
	l := newLedger()
	l.panics = http.ErrAbortHandler
	observed := 0
	h := api.New(api.Config{
		Jobs: l, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: api.DefaultRequestTimeout,
		Observe: func(_, _ string, status int, _ time.Duration) {
			require.Zero(t, status)
			observed++
		},
	})
	require.Panics(t, func() { send(h, "GET", known, "") })
	require.Equal(t, 1, observed)
}

// If the client of a long poll leaves, this is no failure of the server.
func TestAClientThatLeavesGotNoAnswer(t *testing.T) {
	l := newLedger()
	jobIn(job.Running)(l)
	seen := -1
	h := api.New(api.Config{
		Jobs: l, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: api.DefaultRequestTimeout,
		Observe: func(_, _ string, status int, _ time.Duration) { seen = status },
	})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, known+"?wait=30s", nil))
	require.Zero(t, seen)
}
