package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// spansNamed are spans that have ended.
func spansNamed(names ...string) []sdk.ReadOnlySpan {
	var stubs tracetest.SpanStubs
	for _, name := range names {
		stubs = append(stubs, tracetest.SpanStub{Name: name, SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
		})})
	}
	return stubs.Snapshots()
}

// failing is an exporter that gives up each batch after a while.
type failing struct {
	after time.Duration
	mu    sync.Mutex
	at    []time.Time
}

func (f *failing) upload(ctx context.Context, _ *batch) error {
	f.mu.Lock()
	f.at = append(f.at, time.Now())
	f.mu.Unlock()
	answerTo(ctx).tried(errors.New("no"), 0)
	select {
	case <-time.After(f.after):
	case <-ctx.Done():
	}
	return errors.New("no")
}

func (*failing) Stop(context.Context) error { return nil }

func (f *failing) asked() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// senderTo is a sender whose log is read by lines, at its end.
func senderTo(t *testing.T, to outlet) (s *sender, lines func() []map[string]any) {
	t.Helper()
	counts, err := newCounts(noop.Meter{})
	require.NoError(t, err)
	var log bytes.Buffer
	return newSender(to, counts, slog.New(slog.NewJSONHandler(&log, nil)), nil), func() (read []map[string]any) {
		decoder := json.NewDecoder(&log)
		for decoder.More() {
			var line map[string]any
			require.NoError(t, decoder.Decode(&line))
			read = append(read, line)
		}
		return read
	}
}

// refusing is a collector that refuses everything for now, and when it was asked.
type refusing struct {
	retryAfter string
	mu         sync.Mutex
	at         []time.Time
}

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Now())
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Retry-After", r.retryAfter)
	http.Error(recorder, "no", http.StatusServiceUnavailable)
	return recorder.Result(), nil
}

func (r *refusing) asked() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// senderOverHTTP is a sender with the real exporter, whose requests the collector
// answers.
func senderOverHTTP(t *testing.T, collector http.RoundTripper) (s *sender, lines func() []map[string]any) {
	t.Helper()
	client := Target{Protocol: HTTP}.httpClient("http://collector", collector, 10*time.Second)
	to, err := newUploader(t.Context(), client, spansNamed("any")[0])
	require.NoError(t, err)
	return senderTo(t, to)
}

// traffic ends a span every 50 ms of the bubble's time.
func traffic(s *sender, lasts time.Duration) {
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.OnEnd(spansNamed("one")[0])
	}
}

func TestACollectorIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collector := &refusing{retryAfter: "30"}
		s, _ := senderOverHTTP(t, collector)
		traffic(s, 50*time.Second)
		asked := collector.asked()
		require.Len(t, asked, 2)
		require.Equal(t, 30*time.Second, asked[1].Sub(asked[0]))
		began := time.Now()
		require.NoError(t, s.Shutdown(t.Context()))
		require.Zero(t, time.Since(began), "the end waits for no pause")
		require.Len(t, collector.asked(), 3, "and asks once more")
	})
}

func TestTheNextBatchKeepsThePauseOfOneThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collector := &refusing{retryAfter: "50"}
		s, _ := senderOverHTTP(t, collector)
		traffic(s, 5*time.Minute)
		asked := collector.asked()
		require.Len(t, asked, 6)
		for i := range asked[1:] {
			require.Equal(t, 50*time.Second, asked[i+1].Sub(asked[i]))
		}
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestPausesGrowAndABatchIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collector := &refusing{retryAfter: "3600"}
		s, lines := senderOverHTTP(t, collector)
		s.OnEnd(spansNamed("one")[0])
		time.Sleep(keepFor + time.Second)
		require.InDelta(t, 3, len(collector.asked()), 1, "an hour is too long")

		collector.mu.Lock()
		collector.retryAfter, collector.at = "", nil
		collector.mu.Unlock()
		s.OnEnd(spansNamed("two")[0])
		time.Sleep(keepFor + maxPause)
		asked := collector.asked()
		require.InDelta(t, keepFor/maxPause, len(asked), 15)
		for i := range asked[1:] {
			require.LessOrEqual(t, asked[i+1].Sub(asked[i]), 3*maxPause/2)
		}
		require.NoError(t, s.Shutdown(t.Context()))
		var dropped float64
		for _, line := range lines() {
			dropped += line["spans"].(float64)
		}
		require.Equal(t, 2.0, dropped)
	})
}

func TestABadBatchIsDroppedAndOthersFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		s, _ := senderTo(t, f)
		for range 5 {
			s.OnEnd(spansNamed("one")[0])
			time.Sleep(3 * gatherFor)
		}
		require.Len(t, f.asked(), 5)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestEverythingLostIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lines := senderTo(t, &failing{after: keepFor})
		one := spansNamed("one")[0]
		const surplus = 5000
		for range queueSpans + surplus {
			s.OnEnd(one)
		}
		time.Sleep(keepFor + time.Second)
		for range sendSpans + 5 { // the first batch has made room
			s.OnEnd(one)
		}
		time.Sleep(keepFor)
		s.OnEnd(one)
		require.NoError(t, s.Shutdown(t.Context()))
		logged := map[string][]float64{}
		for _, line := range lines() {
			logged[line["msg"].(string)] = append(logged[line["msg"].(string)], line["spans"].(float64))
		}
		full, unsent := logged[s.overflown.message], logged[s.unsent.message]
		require.Equal(t, []float64{surplus, 5}, full)
		total := 0.0
		for _, n := range unsent {
			total += n
		}
		require.Equal(t, float64(queueSpans+sendSpans+1), total)
		require.LessOrEqual(t, len(unsent), 6, "%v", unsent)
	})
}

func TestSpansThatEndWhileTracingStopsAreCounted(t *testing.T) {
	for range 20 {
		traces, counted := begin(t, (&answering{}).listen(t, HTTP), 1)
		const each = 1000
		half := make(chan struct{}, 8)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range each {
					if i == each/2 {
						half <- struct{}{}
					}
					_, span := traces.Tracer().Start(context.Background(), "one")
					span.End()
				}
			})
		}
		<-half
		require.NoError(t, end(t, traces, time.Minute))
		all.Wait()
		told := int64(0)
		for _, n := range counted() {
			told += n
		}
		require.Equal(t, int64(8*each), told)
	}
}

func TestACollectorThatWasAwayForLongIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var dialed []time.Time
		client := Target{Protocol: GRPC}.grpcClient("http://127.0.0.1:1", nil, 10*time.Second,
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dialed = append(dialed, time.Now())
				return nil, errors.New("nobody is there")
			}))
		require.NoError(t, client.Start(t.Context()))
		for began := time.Now(); time.Since(began) < 3*time.Minute; {
			require.Error(t, client.UploadTraces(t.Context(), nil))
		}
		require.NoError(t, client.Stop(t.Context()))
		synctest.Wait()
		require.Greater(t, len(dialed), 20)
		for i := range dialed[1:] {
			require.Less(t, dialed[i+1].Sub(dialed[i]), 8*time.Second)
		}
	})
}
