package tracing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

const (
	// queueSpans bounds the spans that wait to be sent. Full of them, the process takes
	// some 85 MB more (BenchmarkTracedJobs in test/e2e), and twice that if each of them
	// describes an error at length. All jobs of the largest batch fit.
	queueSpans = 16 << 10
	// sendSpans are sent at once.
	sendSpans = 512
	// gatherFor is how long to gather spans before they are sent. More would lose more
	// spans, the parents of others among them, when the process is killed. With less, a
	// lone job would cost a request for each of its spans.
	gatherFor = 10 * time.Millisecond
	// keepFor is how long a batch is sent again and again. Later, it is of little use to
	// the collector, and other batches wait behind it.
	keepFor = 2 * time.Minute
)

// sender puts spans into the SDK's batch processor and stands between that and the
// exporter. It adds what they lack: it counts every span as sent or dropped, keeps
// secrets out of the log, and ends on time.
type sender struct {
	batches  sdk.SpanProcessor
	exporter sdk.SpanExporter
	counts   *counts
	secrets  otlp.Secrets

	waiting  atomic.Int64 // spans that are neither sent nor dropped; at most queueSpans
	overflow atomic.Int64 // spans that are still to be logged as overflown
	failing  atomic.Bool  // the last try to send failed

	// ending keeps spans from getting into the processor behind its end.
	ending  sync.RWMutex
	closed  bool
	sending context.Context // ends when sending is no longer worth a try
	giveUp  context.CancelFunc
	pausing context.Context // ends when pauses must, at the latest with sending
	hurry   context.CancelFunc

	// Those of the goroutine that sends.
	failure                   error     // of the last batch
	notBefore                 time.Time // the collector asked to be left alone until then
	unsent, warned, overflown complaint
}

var errNoTime = errors.New("there was no time left")

func newSender(exporter sdk.SpanExporter, counts *counts, log *slog.Logger, secrets otlp.Secrets) *sender {
	s := &sender{
		exporter: exporter, counts: counts, secrets: secrets,
		unsent:    complaint{log: log, message: "spans could not be sent; jobs go on"},
		warned:    complaint{log: log, message: "the collector complains of spans; jobs go on"},
		overflown: complaint{log: log, message: "spans were dropped, because too many wait for the collector; jobs go on"},
	}
	s.sending, s.giveUp = context.WithCancel(context.Background())
	s.pausing, s.hurry = context.WithCancel(s.sending)
	s.batches = sdk.NewBatchSpanProcessor(outlet{s}, sdk.WithMaxQueueSize(queueSpans), sdk.WithMaxExportBatchSize(sendSpans),
		sdk.WithBatchTimeout(gatherFor), sdk.WithExportTimeout(0)) // the outlet bounds it
	return s
}

// OnStart implements the SDK's SpanProcessor.
func (*sender) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements the SDK's SpanProcessor. It never waits. It bounds the queue itself,
// because the batch processor does not say how many spans it drops.
func (s *sender) OnEnd(span sdk.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	s.ending.RLock()
	defer s.ending.RUnlock()
	switch {
	case s.closed:
		s.counts.dropped(1, droppedUnsent)
	case s.waiting.Add(1) > queueSpans:
		s.waiting.Add(-1)
		s.counts.dropped(1, droppedFull)
		s.overflow.Add(1)
	default:
		s.batches.OnEnd(span)
	}
}

// ForceFlush implements the SDK's SpanProcessor.
func (s *sender) ForceFlush(ctx context.Context) error { return s.batches.ForceFlush(ctx) }

// Shutdown implements the SDK's SpanProcessor. It drops what has not been sent when the
// context ends. If the collector accepts nothing just now, it gets one more try, and
// everything is dropped if that fails: it must not delay the end.
func (s *sender) Shutdown(ctx context.Context) error {
	s.ending.Lock()
	s.closed = true
	s.ending.Unlock()
	if s.failing.Load() {
		s.hurry()
	}
	defer context.AfterFunc(ctx, s.giveUp)()
	err := s.batches.Shutdown(context.WithoutCancel(ctx)) // which returns when all are sent or dropped
	s.giveUp()
	return err
}

// outlet is the sender as the batch processor's exporter.
type outlet struct{ *sender }

// ExportSpans implements the SDK's SpanExporter. It returns no error: the SDK would log
// it as it is, with whatever the collector says in it.
func (o outlet) ExportSpans(_ context.Context, batch []sdk.ReadOnlySpan) error {
	defer o.waiting.Add(-int64(len(batch)))
	wait(o.pausing, time.Until(o.notBefore))
	said := new(answer)
	err := o.send(o.pausing, said, batch)
	if err != nil && o.pausing.Err() != nil { // the end interrupted a pause between two tries
		err = o.send(o.sending, said, batch)
	}
	if n := o.overflow.Swap(0); n > 0 {
		o.overflown.of(n, "")
	}
	if err != nil {
		o.counts.dropped(len(batch), droppedUnsent)
		o.unsent.of(int64(len(batch)), o.secrets.Fit(err.Error()))
		return nil
	}
	rejected := min(max(said.rejected, 0), len(batch))
	o.counts.exported(len(batch) - rejected)
	if rejected > 0 {
		o.counts.dropped(rejected, droppedUnsent)
	}
	if rejected > 0 || said.warning != "" {
		o.warned.of(int64(rejected), o.secrets.Fit(said.warning))
	}
	return nil
}

// send sends a batch until the collector has taken or refused it, it is too old, or the
// context ends.
func (o outlet) send(ctx context.Context, said *answer, batch []sdk.ReadOnlySpan) error {
	if ctx.Err() != nil {
		return cmp.Or(o.failure, errNoTime)
	}
	ctx, cancel := context.WithTimeout(ctx, keepFor)
	defer cancel()
	tries := 0
	said.tried = func(err error, pause time.Duration) {
		tries++
		o.failing.Store(err != nil)
		if err == nil || ctx.Err() != nil {
			return
		}
		o.notBefore = time.Now().Add(pause)
		if tries > 1 { // what is tried again is logged before it is given up
			o.unsent.of(0, o.secrets.Fit(err.Error()))
		}
		o.ending.RLock()
		defer o.ending.RUnlock()
		if o.closed {
			o.giveUp()
		}
	}
	o.failure = o.exporter.ExportSpans(listen(ctx, said), batch)
	return o.failure
}

func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Shutdown implements the SDK's SpanExporter. It logs what has not been logged.
func (o outlet) Shutdown(ctx context.Context) error {
	o.overflown.spans += o.overflow.Swap(0)
	for _, c := range []*complaint{&o.unsent, &o.warned, &o.overflown} {
		c.rest()
	}
	return o.exporter.Shutdown(ctx)
}
