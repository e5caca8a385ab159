package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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
	// stop makes the server stop, as the program does.
	stop func()
}

func serve(t *testing.T, jobs ledgers, configure ...func(*http.Server)) *served {
	t.Helper()
	stopping, stop := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(api.New(api.Config{
		Jobs: jobs, Operations: jobs, Rules: jobs, Retention: jobs, Schedules: jobs, Workflows: jobs, AllPlugins: jobs, Log: slog.New(slog.DiscardHandler), Version: "test", Stopping: stopping.Done(),
		MaxBodyBytes: 4096, MaxBatchBytes: 1 << 20, RequestTimeout: time.Minute,
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

// Each body alone is within the bound.
func TestBodiesThatAreTooMuchTogetherAreRefused(t *testing.T) {
	l := newLedger()
	h := api.New(api.Config{
		Jobs: l, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: 1 << 20, MaxBatchBytes: 1 << 20, MaxReceivingBytes: 256 << 10, RequestTimeout: api.DefaultRequestTimeout,
	})
	large := `{"jobType":"A","payload":"` + strings.Repeat("x", 400<<10) + `"}`
	for name, c := range map[string]struct {
		path, body string
		headers    []string
	}{
		"a submission": {path: "/jobs", body: large},
		"an array":     {path: "/jobs/batch", body: "[" + large + "]"},
		"each":         {path: "/jobs/batch?atomic=false", body: "[" + large + "]"},
		"lines":        {path: "/jobs/batch", body: large + "\n", headers: ndjson},
	} {
		answer := send(h, "POST", c.path, c.body, c.headers...)
		require.Equal(t, 503, answer.Code, name)
		require.Equal(t, "2", answer.Header().Get("Retry-After"), name)
	}
	answer := send(h, "POST", "/jobs/batch?atomic=false", minimal+"\n"+large+"\n"+minimal+"\n", ndjson...)
	require.Equal(t, 200, answer.Code)
	require.Contains(t, answer.Body.String(), `{"done":false,"accepted":1,"refused":0,"problem":{"title":"Service Unavailable","status":503`)
	require.Len(t, l.submitted, 1)
	require.Equal(t, 202, send(h, "POST", "/jobs", minimal).Code, "and everything was given back")
	require.Equal(t, 200, send(h, "POST", "/jobs/batch?atomic=false", strings.Repeat(minimal+"\n", 20_000), ndjson...).Code)
}

func TestABatchIsChargedForEachOfItsItems(t *testing.T) {
	h := api.New(api.Config{
		Jobs: newLedger(), Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: 1 << 20, MaxBatchBytes: 1 << 20, MaxReceivingBytes: 256 << 10, RequestTimeout: api.DefaultRequestTimeout,
	})
	for path, code := range map[string]int{"/jobs/batch": 202, "/jobs/batch?atomic=false": 200} {
		require.Equal(t, code, send(h, "POST", path, array(`{"jobType":"A"}`, 300)).Code)
		answer := send(h, "POST", path, array(`{"jobType":"A"}`, 2000))
		require.Equal(t, 503, answer.Code, "a body of 32 kB becomes 1 MB of jobs")
		require.Contains(t, answer.Body.String(), "too much is being received at once")
	}
}
