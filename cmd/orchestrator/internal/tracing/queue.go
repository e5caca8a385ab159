package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// queueSpans bounds the spans that wait to be sent. Full of them, the process
	// takes some 85 MB more (BenchmarkTracedJobs in test/e2e), and twice that if
	// each tells of an error at length. All jobs of the largest batch fit.
	queueSpans = 16 << 10
	// sendSpans are sent at once.
	sendSpans = 512
	// gatherFor is how long the first span waits for others. What waits is lost when
	// the process is killed, and others miss it as their parent; with less, a job
	// alone costs a request for each of its spans.
	gatherFor = 10 * time.Millisecond
	// sendWithin bounds a try to send, with the library's repetitions.
	sendWithin = 10 * time.Second
	// complainEvery is how often it is logged, at most, that spans were lost.
	complainEvery = time.Minute
)

// queue sends spans in batches. Whoever ends a span never waits: what does not
// fit is dropped and counted.
type queue struct {
	exporter sdk.SpanExporter
	counts   *counts
	log      *slog.Logger
	waiting  chan sdk.ReadOnlySpan
	flush    chan chan struct{}

	closing  chan struct{}
	close    sync.Once
	closed   atomic.Bool
	ended    chan struct{}
	sending  context.Context // ends when sending is no longer worth a try
	giveUp   context.CancelFunc
	complain time.Time // when it may be logged again
}

var _ sdk.SpanProcessor = (*queue)(nil)

func newQueue(exporter sdk.SpanExporter, counts *counts, log *slog.Logger) *queue {
	q := &queue{
		exporter: exporter, counts: counts, log: log,
		waiting: make(chan sdk.ReadOnlySpan, queueSpans), flush: make(chan chan struct{}),
		closing: make(chan struct{}), ended: make(chan struct{}),
	}
	q.sending, q.giveUp = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements the SDK's SpanProcessor.
func (*queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements the SDK's SpanProcessor. It never waits.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if !q.closed.Load() {
		select {
		case q.waiting <- span:
			return
		default:
		}
	}
	q.counts.dropped(1, droppedFull)
}

func (q *queue) run() {
	defer close(q.ended)
	batch := make([]sdk.ReadOnlySpan, 0, sendSpans)
	gather := time.NewTimer(gatherFor)
	defer gather.Stop()
	send := func() {
		q.send(batch)
		clear(batch)
		batch = batch[:0]
	}
	for {
		select {
		case span := <-q.waiting:
			if len(batch) == 0 {
				gather.Reset(gatherFor)
			}
			if batch = append(batch, span); len(batch) == sendSpans {
				send()
			}
		case <-gather.C:
			send()
		case done := <-q.flush:
			for range len(q.waiting) {
				if batch = append(batch, <-q.waiting); len(batch) == sendSpans {
					send()
				}
			}
			send()
			close(done)
		case <-q.closing:
			for range len(q.waiting) {
				if batch = append(batch, <-q.waiting); len(batch) == sendSpans {
					send()
				}
			}
			send()
			return
		}
	}
}

func (q *queue) send(batch []sdk.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(q.sending, sendWithin)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, batch)
	if err == nil {
		q.counts.exported(len(batch))
		return
	}
	q.counts.dropped(len(batch), droppedUnsent)
	if now := time.Now(); now.After(q.complain) {
		q.complain = now.Add(complainEvery)
		q.log.Warn("spans could not be sent; jobs go on", slog.Int("spans", len(batch)), slog.Any("error", err))
	}
}

// ForceFlush implements the SDK's SpanProcessor.
func (q *queue) ForceFlush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case q.flush <- done:
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown implements the SDK's SpanProcessor. What has not been sent when the
// context ends is dropped.
func (q *queue) Shutdown(ctx context.Context) error {
	q.closed.Store(true)
	q.close.Do(func() { close(q.closing) })
	stop := context.AfterFunc(ctx, q.giveUp)
	defer stop()
	<-q.ended
	q.giveUp()
	return q.exporter.Shutdown(ctx)
}
