package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is the API behind a real server with short deadlines.
type served struct {
	*httptest.Server
	// stop is what the program does when it stops.
	stop func()
}

func serve(t *testing.T, jobs ledgers, configure ...func(*http.Server)) *served {
	t.Helper()
	stopping, stop := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(api.New(api.Config{
		Jobs: jobs, Operations: jobs, Log: slog.New(slog.DiscardHandler), Version: "test", Stopping: stopping.Done(),
		MaxBodyBytes: 4096, MaxBatchBytes: 1 << 20, RequestTimeout: 10 * time.Second,
	}))
	for _, change := range configure {
		change(server.Config)
	}
	server.Start()
	t.Cleanup(func() {
		stop()
		server.Close()
	})
	return &served{Server: server, stop: stop}
}

// get sends a request and returns the status and body of the answer.
func (s *served) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	require.NoError(t, err)
	answer, err := s.Client().Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}
