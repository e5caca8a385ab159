package tracing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// ofAJob is a span as package spans encodes it.
func ofAJob(t *testing.T, name string) []byte {
	t.Helper()
	wire, err := proto.Marshal(&otlp.Span{Name: name, TraceId: make([]byte, 16), SpanId: make([]byte, 8)})
	require.NoError(t, err)
	return wire
}

func TestSpansOfJobsAndOthersReachACollectorTogether(t *testing.T) {
	for _, protocol := range []string{GRPC, HTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json") // which the configuration overrides
			received := collector.Start(t)
			target := Target{Endpoint: map[string]string{GRPC: received.GRPC, HTTP: received.HTTP}[protocol], Protocol: protocol}
			traces, counted := begin(t, target, 1)
			const n = 3 * sendSpans / 2
			for i := range n {
				traces.Export(ofAJob(t, fmt.Sprint("job ", i)))
				_, span := traces.Tracer().Start(t.Context(), fmt.Sprint("other ", i))
				span.End()
			}
			require.NoError(t, end(t, traces, time.Minute))
			names := make(map[string]bool)
			for _, span := range received.Spans() {
				names[span.Name] = true
				require.Equal(t, "holdfast", span.Resource["service.name"], span.Name)
				require.Equal(t, "test/1", span.Resource["service.instance.id"], span.Name)
			}
			require.Len(t, names, 2*n)
			require.EqualValues(t, 2*n, counted()["holdfast.spans.sent "])
		})
	}
}

// batches is an outlet that keeps the sizes of batches, and when each came.
type batches struct {
	busy  chan struct{} // each batch waits for one, if it is not nil
	mu    sync.Mutex
	sizes []int
	at    []time.Time
}

func (b *batches) upload(_ context.Context, one *batch) error {
	b.mu.Lock()
	b.sizes, b.at = append(b.sizes, one.size()), append(b.at, time.Now())
	b.mu.Unlock()
	if b.busy != nil {
		<-b.busy
	}
	return nil
}

func (*batches) Stop(context.Context) error { return nil }

// sent are the sizes of the batches, and when each came.
func (b *batches) sent() (sizes []int, at []time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sizes), slices.Clone(b.at)
}

func TestABatchIsSentWhenItIsFullOrItsFirstSpanHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(batches)
		s, _ := senderTo(t, to)
		began := time.Now()
		span := ofAJob(t, "one")
		for range sendSpans + 3 {
			s.Export(span)
		}
		synctest.Wait()
		sizes, at := to.sent()
		require.Equal(t, []int{sendSpans}, sizes)
		require.Equal(t, began, at[0], "at once")
		time.Sleep(gatherFor - time.Millisecond)
		s.Export(span)
		s.OnEnd(spansNamed("one")[0])
		synctest.Wait()
		sizes, _ = to.sent()
		require.Len(t, sizes, 1)
		time.Sleep(time.Minute)
		sizes, at = to.sent()
		require.Equal(t, []int{sendSpans, 5}, sizes)
		require.Equal(t, began.Add(gatherFor), at[1])
		s.Export(span)
		require.NoError(t, s.Shutdown(t.Context()))
		sizes, _ = to.sent()
		require.Equal(t, []int{sendSpans, 5, 1}, sizes, "the end waits for nothing")
		require.NoError(t, s.Shutdown(t.Context()), "a second end does nothing")
	})
}

func TestWhatWaitsForABusyCollectorIsSentInFullBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &batches{busy: make(chan struct{})}
		s, _ := senderTo(t, to)
		span := ofAJob(t, "one")
		for range 2*sendSpans + 2 { // The first is sent with one or two others.
			s.Export(span)
			time.Sleep(gatherFor / 2)
		}
		close(to.busy)
		require.NoError(t, s.Shutdown(t.Context()))
		sizes, _ := to.sent()
		require.Len(t, sizes, 3, "%v", sizes)
		require.Equal(t, sendSpans, sizes[1])
		require.Equal(t, sendSpans+2, sizes[0]+sizes[2])
	})
}
