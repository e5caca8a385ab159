package api_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// stage lets a test say what comes next on all streams.
type stage struct {
	next chan job.EventBatch

	mu     sync.Mutex
	filter job.EventFilter
	after  *int64
	open   int
	fails  error
}

func (s *stage) Follow(_ context.Context, filter job.EventFilter, after *int64) (job.EventStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filter, s.after = filter, after
	if s.fails == nil {
		s.open++
	}
	return &staged{stage: s, position: 41}, s.fails
}

func (s *stage) streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

type staged struct {
	*stage
	position int64
}

func (s *staged) Next(ctx context.Context) (job.EventBatch, error) {
	select {
	case batch := <-s.next:
		return batch, nil
	case <-ctx.Done():
		return job.EventBatch{}, ctx.Err()
	}
}

func (s *staged) Position() int64 { return s.position }

func (s *staged) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// following serves the stage, and returns a function that ends the server's streams.
func following(t *testing.T, s *stage, access *guard.Access) (url string, stop func()) {
	t.Helper()
	l := newLedger()
	stopping, end := context.WithCancel(context.Background())
	config := api.Config{
		Jobs: l, Operations: l, Rules: l, Retention: l, Bulk: l, Schedules: l, Events: s, Log: slog.New(slog.DiscardHandler), Version: "test", Stopping: stopping.Done(),
		MaxBodyBytes: 4096, MaxBatchBytes: 1 << 20, RequestTimeout: time.Minute,
	}
	if access != nil {
		config.Guard = guard.New(guard.Config{Access: access, Log: config.Log})
	}
	server := httptest.NewUnstartedServer(api.New(config))
	server.Config.ReadTimeout, server.Config.WriteTimeout = outlived, outlived // a stream outlives both
	server.Start()
	t.Cleanup(func() {
		end()
		server.Close()
	})
	return server.URL, end
}

// streamed is an answer whose body is still being sent. It is closed when the test ends.
type streamed struct {
	StatusCode int
	Header     http.Header
	Body       io.Reader
}

func get(t *testing.T, url string, headers ...string) streamed {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return streamed{answer.StatusCode, answer.Header, answer.Body}
}

func lines(t *testing.T, from *bufio.Scanner, n int) (read []string) {
	t.Helper()
	for range n {
		require.True(t, from.Scan(), "%v", from.Err())
		read = append(read, from.Text())
	}
	return read
}

func TestEventsAreSentAsTheyCome(t *testing.T) {
	t.Parallel()
	s := &stage{next: make(chan job.EventBatch)}
	url, stop := following(t, s, nil)
	answer := get(t, url+"/events?jobType=MAIL&tag=blue&tenant=acme&lastEventId=7", "Last-Event-ID: 40")
	require.Equal(t, 200, answer.StatusCode)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	require.Equal(t, job.EventFilter{Type: "MAIL", Tag: "blue", Tenant: "acme"}, s.filter)
	require.EqualValues(t, 40, *s.after, "the header comes first")
	body := bufio.NewScanner(answer.Body)
	require.Equal(t, []string{"retry: 1000", "id: 41", ""}, lines(t, body, 3))

	<-time.After(outlived * 3 / 2) // longer than the server's deadlines
	s.next <- job.EventBatch{Gap: &job.EventGap{After: 41, Next: 50}, Events: []job.Event{
		{ID: 50, At: birth, JobID: job.ID{1}, Type: "MAIL", Tenant: "acme", Tags: []string{"a\nb"}, State: job.Dead},
	}}
	require.Equal(t, []string{
		"id: 49", "event: gap", `data: {"after":41,"next":50}`, "",
		"id: 50", "event: job.dead",
		`data: {"jobId":"01000000-0000-0000-0000-000000000000","jobType":"MAIL","tenant":"acme","tags":["a\nb"],"status":"FAILED","at":"2026-02-20T00:02:03.000456Z"}`, "",
	}, lines(t, body, 8))
	require.Equal(t, 1, s.streams())
	stop()
	require.False(t, body.Scan(), "the stream ends with the server")
	require.Eventually(t, func() bool { return s.streams() == 0 }, time.Minute, time.Millisecond)
}

func TestAStreamThatCannotBegin(t *testing.T) {
	s := &stage{next: make(chan job.EventBatch)}
	url, _ := following(t, s, nil)
	for path, want := range map[string]string{
		"/events?lastEventId=-1":  "query.lastEventId",
		"/events?lastEventId=x":   "query.lastEventId",
		"/events?type=MAIL":       "query.type",
		"/events?tag=" + "%00":    "query.tag",
		"/events?jobType=A&x=y":   "query.x",
		"/events?tenant=a&tenant": "query.tenant",
	} {
		answer := get(t, url+path)
		require.Equal(t, 422, answer.StatusCode, path)
		var text [2000]byte
		n, _ := answer.Body.Read(text[:])
		require.Contains(t, string(text[:n]), want)
	}
	require.Equal(t, 422, get(t, url+"/events", "Last-Event-ID: soon").StatusCode)
	s.fails = job.ErrTooManyStreams
	answer := get(t, url+"/events")
	require.Equal(t, 503, answer.StatusCode)
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	l := newLedger()
	require.Equal(t, 409, send(newAPI(t, l), "GET", "/events", "").Code, "events are off")
}

func TestATenantsStreamHasItsOwnEvents(t *testing.T) {
	s := &stage{next: make(chan job.EventBatch)}
	url, _ := following(t, s, &guard.Access{NoPassword: true, Closed: true, Tokens: []guard.Token{
		{Name: "acme", Digest: guard.DigestOf("secret"), Scopes: []guard.Scope{guard.Read}, Tenant: "acme"},
	}})
	require.Equal(t, 401, get(t, url+"/events").StatusCode)
	require.Equal(t, 404, get(t, url+"/events?tenant=other", "Authorization: Bearer secret").StatusCode)
	require.Equal(t, 200, get(t, url+"/events", "Authorization: Bearer secret").StatusCode)
	require.Equal(t, job.EventFilter{Tenant: "acme"}, s.filter)
}
