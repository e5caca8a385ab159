package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestAReadOnlyAPISaysWhyNothingCanBeChanged(t *testing.T) {
	handler := api.ReadOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), "the ledger is closed")
	for request, status := range map[[2]string]int{
		{http.MethodGet, "/jobs"}: http.StatusTeapot, {http.MethodHead, "/jobs"}: http.StatusTeapot, {http.MethodPost, "/schedules/preview"}: http.StatusTeapot,
		{http.MethodPost, "/jobs"}: http.StatusConflict, {http.MethodPut, "/schedules/a"}: http.StatusConflict, {http.MethodDelete, "/pauses/type/A"}: http.StatusConflict,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), request[0], request[1], nil))
		require.Equal(t, status, answer.Code, request)
		if status == http.StatusConflict {
			require.Equal(t, v1.ProblemMedia, answer.Header().Get("Content-Type"))
			require.Contains(t, answer.Body.String(), "the ledger is closed")
		}
	}
}
