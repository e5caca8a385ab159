package api_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// swallower accepts every job and forgets it, so that only the API is measured.
type swallower struct{ ledger }

func (*swallower) Submit(_ context.Context, s job.Submission) (job.Receipt, error) {
	return job.Receipt{ID: s.ID, Type: s.Type, State: job.Queued, CreatedAt: birth, UpdatedAt: birth}, nil
}

func (*swallower) TypeSpec(context.Context, string) (job.TypeSpec, error) {
	return job.TypeSpec{MaxAttempts: 4, Timeout: 30 * time.Second}, nil
}

// sink is an answer that nobody reads.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func newBenchAPI() http.Handler {
	return api.New(api.Config{
		Jobs: &swallower{}, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: 10 * time.Second,
	})
}

func BenchmarkSubmit(b *testing.B) {
	h := newBenchAPI()
	body := []byte(`{"jobType":"SEND_EMAIL","payload":{"to":"someone@example.com","subject":"Hello","body":"` +
		string(bytes.Repeat([]byte("text "), 30)) + `"},"idempotencyKey":"order-4711","tags":["a","b"]}`)
	where := &url.URL{Path: "/jobs"}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"bench"}}
	b.ReportAllocs()
	for b.Loop() {
		answer := &sink{header: http.Header{}}
		request := &http.Request{
			Method: "POST", URL: where, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "localhost",
			Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), RequestURI: "/jobs",
		}
		h.ServeHTTP(answer, request)
		require.Equal(b, 202, answer.status)
	}
}
