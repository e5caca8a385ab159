package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
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

// failing is a collector that says no, and when it was asked.
type failing struct {
	says answer
	mu   sync.Mutex
	at   []time.Time
}

func (f *failing) ExportSpans(ctx context.Context, _ []sdk.ReadOnlySpan) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = append(f.at, time.Now())
	*answerTo(ctx) = f.says
	return errors.New("no")
}

func (*failing) Shutdown(context.Context) error { return nil }

func (f *failing) asked() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// queueTo is a queue whose log is read by lines, at its end.
func queueTo(t *testing.T, f *failing) (q *queue, lines func() []map[string]any) {
	t.Helper()
	counts, err := newCounts(noop.Meter{})
	require.NoError(t, err)
	var log bytes.Buffer
	return newQueue(f, counts, slog.New(slog.NewJSONHandler(&log, nil)), nil), func() (read []map[string]any) {
		decoder := json.NewDecoder(&log)
		for decoder.More() {
			var line map[string]any
			require.NoError(t, decoder.Decode(&line))
			read = append(read, line)
		}
		return read
	}
}

// traffic ends a span every 50 ms of the bubble's time.
func traffic(q *queue, lasts time.Duration) {
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		q.OnEnd(spansNamed("one")[0])
	}
}

func TestACollectorIsLeftAloneAsLongAsItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{says: answer{again: true, pause: 30 * time.Second}}
		q, _ := queueTo(t, f)
		traffic(q, 50*time.Second)
		asked := f.asked()
		require.Len(t, asked, 2)
		require.Equal(t, 30*time.Second, asked[1].Sub(asked[0]))
		began := time.Now()
		require.NoError(t, q.Shutdown(t.Context()))
		require.Zero(t, time.Since(began), "the end waits for no pause")
		require.Len(t, f.asked(), 3, "and asks once more")
	})
}

func TestTheNextBatchKeepsThePauseOfOneThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{says: answer{again: true, pause: 50 * time.Second}}
		q, _ := queueTo(t, f)
		traffic(q, 5*time.Minute)
		asked := f.asked()
		require.Len(t, asked, 6)
		for i := range asked[1:] {
			require.Equal(t, 50*time.Second, asked[i+1].Sub(asked[i]))
		}
		require.NoError(t, q.Shutdown(t.Context()))
	})
}

func TestPausesGrowAndABatchIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{says: answer{again: true, pause: time.Hour}}
		q, lines := queueTo(t, f)
		q.OnEnd(spansNamed("one")[0])
		time.Sleep(keepFor + time.Second)
		require.Len(t, f.asked(), 3, "an hour is too long")

		f.mu.Lock()
		f.says.pause, f.at = 0, nil
		f.mu.Unlock()
		time.Sleep(maxAsked) // until it may be asked again
		q.OnEnd(spansNamed("two")[0])
		time.Sleep(keepFor + time.Second)
		asked := f.asked()
		require.InDelta(t, keepFor/(3*maxPause/4), len(asked), 15)
		for i := range asked[1:] {
			require.LessOrEqual(t, asked[i+1].Sub(asked[i]), maxPause)
		}
		require.NoError(t, q.Shutdown(t.Context()))
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
		q, _ := queueTo(t, f)
		for range 5 {
			q.OnEnd(spansNamed("one")[0])
			time.Sleep(2 * gatherFor)
		}
		require.Len(t, f.asked(), 5)
		require.NoError(t, q.Shutdown(t.Context()))
	})
}

func TestAllThatIsLostIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, lines := queueTo(t, &failing{says: answer{again: true}})
		one := spansNamed("one")[0]
		const n = queueSpans + 5000
		for range n {
			q.OnEnd(one)
		}
		time.Sleep(10 * time.Second)
		for range sendSpans + 5 { // a batch of which has room, for another is on its way
			q.OnEnd(one)
		}
		time.Sleep(complainEvery)
		q.OnEnd(one)
		time.Sleep(10 * time.Second)
		require.NoError(t, q.Shutdown(t.Context()))
		told := map[string][]float64{}
		for _, line := range lines() {
			told[line["msg"].(string)] = append(told[line["msg"].(string)], line["spans"].(float64))
		}
		full := told[q.overflown.message]
		require.Len(t, full, 2, "%v", told)
		require.Equal(t, 5006.0, full[0]+full[1])
		unsent := told[q.unsent.message]
		require.Len(t, unsent, 3, "%v", told)
		require.Equal(t, float64(n+sendSpans+6), full[0]+full[1]+unsent[0]+unsent[1]+unsent[2])
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
		require.NoError(t, end(t, traces, 5*time.Second))
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
		client := Target{Protocol: GRPC}.grpcClient("http://127.0.0.1:1", nil, 0,
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dialed = append(dialed, time.Now())
				return nil, errors.New("nobody is there")
			}))
		require.NoError(t, client.Start(t.Context()))
		for range 180 {
			require.Error(t, client.UploadTraces(t.Context(), nil))
			time.Sleep(time.Second)
		}
		require.NoError(t, client.Stop(t.Context()))
		synctest.Wait()
		require.Greater(t, len(dialed), 20)
		for i := range dialed[1:] {
			require.Less(t, dialed[i+1].Sub(dialed[i]), 8*time.Second)
		}
	})
}
