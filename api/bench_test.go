package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// swallower accepts every job and forgets it, so a benchmark measures only the API.
type swallower struct{ ledger }

func (*swallower) Submit(_ context.Context, s job.Submission) (job.Receipt, error) {
	return job.Receipt{ID: s.ID, Type: s.Type, State: job.Queued, CreatedAt: birth, UpdatedAt: birth}, nil
}

func (*swallower) TypeSpec(context.Context, string) (job.TypeSpec, error) {
	return job.TypeSpec{MaxAttempts: 4, Timeout: 30 * time.Second}, nil
}

func (*swallower) SubmitAll(_ context.Context, batch []job.Submission) ([]job.Submitted, error) {
	results := make([]job.Submitted, len(batch))
	for i, s := range batch {
		results[i].Receipt = job.Receipt{ID: s.ID, Type: s.Type, State: job.Queued, CreatedAt: birth, UpdatedAt: birth}
	}
	return results, nil
}

// sink discards an answer.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) Flush()                      {}

func newBenchAPI() http.Handler {
	return api.New(api.Config{
		Jobs: &swallower{}, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: api.DefaultMaxBodyBytes, MaxBatchBytes: api.DefaultMaxBatchBytes, RequestTimeout: time.Minute,
	})
}

// usual is a typical submission.
var usual = `{"jobType":"SEND_EMAIL","payload":{"to":"someone@example.com","subject":"Hello","body":"` +
	strings.Repeat("text ", 30) + `"},"idempotencyKey":"order-4711","tags":["a","b"]}`

// bench sends a body again and again.
func bench(b *testing.B, path, contentType, body string, want int) {
	h := newBenchAPI()
	where, err := url.Parse(path)
	require.NoError(b, err)
	header := http.Header{"Content-Type": {contentType}, "User-Agent": {"bench"}}
	b.ReportAllocs()
	for b.Loop() {
		answer := &sink{header: http.Header{}}
		request := &http.Request{
			Method: "POST", URL: where, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "localhost",
			Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), RequestURI: path,
		}
		h.ServeHTTP(answer, request)
		require.Equal(b, want, answer.status)
	}
}

func BenchmarkSubmit(b *testing.B) { bench(b, "/jobs", "application/json", usual, 202) }

// BenchmarkDecodeBatch sends 1,000 jobs at a time.
func BenchmarkDecodeBatch(b *testing.B) {
	const jobs = 1000
	for name, c := range map[string]struct {
		path, contentType, body string
		want                    int
	}{
		"array":     {"/jobs/batch", "application/json", array(usual, jobs), 202},
		"lines":     {"/jobs/batch", "application/x-ndjson", strings.Repeat(usual+"\n", jobs), 202},
		"each line": {"/jobs/batch?atomic=false", "application/x-ndjson", strings.Repeat(usual+"\n", jobs), 200},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			bench(b, c.path, c.contentType, c.body, c.want)
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*jobs), "µs/job")
		})
	}
}

// BenchmarkNew measures what the API costs when the server starts.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newBenchAPI()
	}
}
