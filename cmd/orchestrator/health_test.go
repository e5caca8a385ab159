package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// probed serves readiness with the status, to whoever shows no credentials.
func probed(t *testing.T, status int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
			status = http.StatusTeapot
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = w.Write([]byte(`{"status":"ok"}`))
			return
		}
		_, _ = w.Write([]byte(`{"title":"Service Unavailable","status":503,"detail":"the database does not answer"}`))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestHealthOfAReadyServer(t *testing.T) {
	t.Chdir(t.TempDir())
	server := probed(t, http.StatusOK)
	for name, probe := range map[string]struct{ environ, args []string }{
		"named by the flag":          {nil, []string{"--server", server.URL}},
		"named by the environment":   {[]string{"HOLDFAST_SERVER=" + server.URL, "HOLDFAST_TOKEN=wrong"}, nil},
		"named by the configuration": {[]string{"HOLDFAST_SERVER__ADDRESS=" + server.Listener.Addr().String()}, nil},
	} {
		code, stdout, stderr := execute(t, probe.environ, append([]string{"health"}, probe.args...)...)
		require.Equal(t, exitOK, code, "%s: %s", name, stderr)
		require.Equal(t, "ready\n", stdout, name)
	}
}

func TestHealthAsJSON(t *testing.T) {
	server := probed(t, http.StatusOK)
	code, stdout, stderr := execute(t, nil, "health", "--json", "--server", server.URL)
	require.Equal(t, exitOK, code, stderr)
	require.JSONEq(t, `{"ready":true,"server":"`+server.URL+`"}`, stdout)

	server = probed(t, http.StatusServiceUnavailable)
	code, stdout, stderr = execute(t, nil, "health", "--json", "--server", server.URL)
	require.Equal(t, exitFailure, code)
	require.Empty(t, stderr, "the JSON says it")
	require.JSONEq(t, `{"ready":false,"server":"`+server.URL+`","reason":"the database does not answer"}`, stdout)

	server.Close()
	code, stdout, _ = execute(t, nil, "health", "--json", "--server", server.URL)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stdout, `"reason":"no answer from `+server.URL)
}

func TestHealthOfAServerThatIsNotReady(t *testing.T) {
	server := probed(t, http.StatusServiceUnavailable)
	code, stdout, stderr := execute(t, nil, "health", "--server", server.URL)
	require.Equal(t, exitFailure, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "the database does not answer")

	server.Close()
	code, _, stderr = execute(t, nil, "health", "--server", server.URL)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "no answer from "+server.URL)
	require.NotContains(t, stderr, "--direct")

	code, _, stderr = execute(t, nil, "health", "--server", "nowhere")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `"nowhere" is not an address`)
}
