package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// answering is a collector that answers all that it is sent alike.
type answering struct {
	collect.UnimplementedTraceServiceServer
	partly *collect.ExportTracePartialSuccess
	// refuses with the status of HTTP, which gRPC has a code for, and wants to be
	// left alone for so many seconds, if any.
	refuses int
	after   int
	json    bool
}

func (a *answering) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if a.refuses != 0 {
		if a.after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(a.after))
		}
		http.Error(w, "no", a.refuses)
		return
	}
	if a.json {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(`{"partialSuccess": {"rejectedSpans": "` + strconv.FormatInt(a.partly.GetRejectedSpans(), 10) + `"}}`))
		return
	}
	body, _ := proto.Marshal(&collect.ExportTraceServiceResponse{PartialSuccess: a.partly})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body)
}

func (a *answering) Export(context.Context, *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	if a.refuses == 0 {
		return &collect.ExportTraceServiceResponse{PartialSuccess: a.partly}, nil
	}
	code := map[int]codes.Code{503: codes.Unavailable, 429: codes.ResourceExhausted, 400: codes.InvalidArgument}[a.refuses]
	refused := status.New(code, "no")
	if a.after > 0 {
		refused, _ = refused.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(a.after) * time.Second)})
	}
	return nil, refused.Err()
}

func (a *answering) listen(t *testing.T, protocol string) Target {
	t.Helper()
	return listening(t, a, protocol)
}

func listening(t *testing.T, a interface {
	http.Handler
	collect.TraceServiceServer
}, protocol string,
) Target {
	t.Helper()
	if protocol == HTTP {
		server := httptest.NewServer(a)
		t.Cleanup(server.Close)
		return Target{Endpoint: server.URL, Protocol: HTTP}
	}
	at, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	collect.RegisterTraceServiceServer(server, a)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(at)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return Target{Endpoint: "http://" + at.Addr().String(), Protocol: GRPC}
}

func TestOnlySpansThatWereRejectedAreDropped(t *testing.T) {
	for _, protocol := range []string{GRPC, HTTP} {
		for _, rejected := range []int64{0, 1, 99} {
			a := &answering{partly: &collect.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: "a word"}, json: protocol == HTTP && rejected == 1}
			traces, counted := begin(t, a.listen(t, protocol), 1)
			for range 10 {
				_, span := traces.Tracer().Start(t.Context(), "one")
				span.End()
			}
			require.NoError(t, end(t, traces, time.Minute))
			dropped := min(rejected, 10)
			require.Equal(t, map[string]int64{
				"holdfast.spans.sent ": 10 - dropped, "holdfast.spans.dropped queue_full": 0, "holdfast.spans.dropped not_sent": dropped,
			}, counted(), "%s %d", protocol, rejected)
		}
	}
}

// counting counts the requests of both protocols, and calls a function at the second.
type counting struct {
	*answering
	requests atomic.Int64
	second   func()
}

func (c *counting) count() {
	if c.requests.Add(1) == 2 {
		c.second()
	}
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.count()
	c.answering.ServeHTTP(w, r)
}

func (c *counting) Export(ctx context.Context, r *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	c.count()
	return c.answering.Export(ctx, r)
}

func TestABatchIsSentAgainWhereTheCollectorMayTakeItLater(t *testing.T) {
	for name, c := range map[string]struct {
		refuses, after int
		grpc, http     bool
	}{
		"away":                           {503, 0, true, true},
		"away for a while":               {503, 1, true, true},
		"overrun":                        {429, 0, false, true},
		"overrun, and says for how long": {429, 1, true, true},
		"a bad batch":                    {400, 1, false, false},
	} {
		for protocol, again := range map[string]bool{GRPC: c.grpc, HTTP: c.http} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			collector := &counting{answering: &answering{refuses: c.refuses, after: c.after}, second: cancel}
			client, err := listening(t, collector, protocol).client()
			require.NoError(t, err)
			to, err := newUploader(t.Context(), client, spansNamed("any")[0])
			require.NoError(t, err)
			err = to.upload(ctx, &batch{others: spansNamed("one")})
			cancel()
			require.Error(t, err)
			require.Equal(t, again, collector.requests.Load() > 1, "%s by %s", name, protocol)
			require.NoError(t, to.Stop(t.Context()))
		}
	}
}

func TestACollectorMayNotAskForAnHour(t *testing.T) {
	refused, err := status.New(codes.Unavailable, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})
	require.NoError(t, err)
	pause, err := boundedPause(refused.Err())
	require.Equal(t, maxAsked, pause)
	details := status.Convert(err).Details()
	require.Len(t, details, 1)
	require.Equal(t, maxAsked, details[0].(*errdetails.RetryInfo).RetryDelay.AsDuration())
	pause, err = boundedPause(nil)
	require.Zero(t, pause)
	require.NoError(t, err)
}

func TestARedirectIsARefusal(t *testing.T) {
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		var followed atomic.Bool
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
		front := httptest.NewServer(http.RedirectHandler(elsewhere.URL, code))
		traces, counted := begin(t, Target{Endpoint: front.URL, Protocol: HTTP, Headers: map[string]string{"x-api-key": "s3cret"}}, 1)
		_, span := traces.Tracer().Start(t.Context(), "one")
		span.End()
		require.NoError(t, end(t, traces, time.Minute))
		front.Close()
		elsewhere.Close()
		require.False(t, followed.Load(), code)
		require.Equal(t, map[string]int64{
			"holdfast.spans.sent ": 0, "holdfast.spans.dropped queue_full": 0, "holdfast.spans.dropped not_sent": 1,
		}, counted(), code)
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999999999999999": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		require.Equal(t, want, retryAfter(header, now), header)
	}
}

func TestAnAnswerIsLoggedShortAndWithoutHeaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("bad token " + strings.TrimPrefix(r.Header.Get("x-token"), "Bearer ") + strings.Repeat("y", 3<<20)))
	}))
	defer server.Close()
	var log bytes.Buffer
	traces, err := Start(t.Context(), Config{
		Target: Target{Endpoint: server.URL, Protocol: HTTP, Headers: map[string]string{"x-token": "Bearer s3cret"}},
		Ratio:  1, Meter: noop.Meter{}, Log: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	require.NoError(t, err)
	_, span := traces.Tracer().Start(t.Context(), "one")
	span.End()
	require.NoError(t, end(t, traces, time.Minute))
	require.Less(t, log.Len(), 2<<10)
	require.Contains(t, log.String(), "bad token xxxxx")
	require.NotContains(t, log.String(), "s3cret")
}
