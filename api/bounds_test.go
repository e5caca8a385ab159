package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
)

func TestAHeaderIsBoundedInBytes(t *testing.T) {
	h := api.BoundHeader(1024, newAPI(t, newLedger()))
	require.Equal(t, http.StatusOK, send(h, "GET", "/healthz", "", "X-A: "+strings.Repeat("a", 900)).Code)
	for name, answer := range map[string]int{
		"one long field":  send(h, "GET", "/healthz", "", "X-A: "+strings.Repeat("a", 1024)).Code,
		"many short ones": send(h, "GET", "/healthz", "", strings.Split(strings.Repeat("X-A: 1,", 120)+"X-B: 1", ",")...).Code,
		"a long URL":      send(h, "GET", "/healthz?"+strings.Repeat("a", 1024), "").Code,
	} {
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer, name)
	}
	require.Equal(t, "application/problem+json",
		send(h, "GET", "/healthz", "", "X-A: "+strings.Repeat("a", 1024)).Header().Get("Content-Type"))
}
