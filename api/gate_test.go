package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
)

func TestAClosedGateIsAliveAndRefusesTheRestWithItsReason(t *testing.T) {
	gate := api.NewGate("the server is starting")
	call := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		gate.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w
	}
	require.Equal(t, 200, call(http.MethodGet, "/healthz").Code)
	require.Equal(t, 200, call(http.MethodHead, "/healthz").Code)
	for _, path := range []string{"/readyz", "/jobs", "/metrics", "/nowhere"} {
		refused := call(http.MethodGet, path)
		require.Equal(t, 503, refused.Code)
		require.NotEmpty(t, refused.Header().Get("Retry-After"))
		require.JSONEq(t, `{"title":"Service Unavailable","status":503,"detail":"the server is starting"}`, refused.Body.String())
	}
	gate.Wait("the server is waiting for its database")
	require.Contains(t, call(http.MethodGet, "/readyz").Body.String(), "waiting for its database")

	gate.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	require.Equal(t, http.StatusTeapot, call(http.MethodGet, "/healthz").Code)
}
