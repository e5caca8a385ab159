package tracing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

const (
	// queueSpans bounds the spans that wait to be sent. Full of them, the process takes
	// some 25 MB more (BenchmarkTracedJobs in test/e2e), and some 110 MB if each of them
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

// sender gathers spans into batches and sends them. It counts every span as sent or dropped,
// keeps secrets out of the log, and ends on time.
type sender struct {
	queue   *queue
	outlet  outlet
	counts  *counts
	secrets otlp.Secrets

	waiting  atomic.Int64 // spans that are neither sent nor dropped; at most queueSpans
	overflow atomic.Int64 // spans that are still to be logged as overflown
	failing  atomic.Bool  // the last try to send failed

	ending  chan struct{}   // closed when no more spans are taken
	ended   chan struct{}   // closed when all are sent or dropped
	sending context.Context // ends when sending is no longer worth a try
	giveUp  context.CancelFunc
	pausing context.Context // ends when pauses must, at the latest with sending
	hurry   context.CancelFunc

	// Those of the goroutine that sends.
	failure                   error     // of the last batch
	notBefore                 time.Time // the collector asked to be left alone until then
	unsent, warned, overflown complaint
}

// outlet is the way to the collector.
type outlet interface {
	upload(ctx context.Context, b *batch) error
	Stop(ctx context.Context) error
}

var errNoTime = errors.New("there was no time left")

func newSender(to outlet, counts *counts, log *slog.Logger, secrets otlp.Secrets) *sender {
	s := &sender{
		queue: newQueue(), outlet: to, counts: counts, secrets: secrets, ending: make(chan struct{}), ended: make(chan struct{}),
		unsent:    complaint{log: log, message: "spans could not be sent; jobs go on"},
		warned:    complaint{log: log, message: "the collector complains of spans; jobs go on"},
		overflown: complaint{log: log, message: "spans were dropped, because too many wait for the collector; jobs go on"},
	}
	s.sending, s.giveUp = context.WithCancel(context.Background())
	s.pausing, s.hurry = context.WithCancel(s.sending)
	go s.run()
	return s
}

// OnStart implements the SDK's SpanProcessor.
func (*sender) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements the SDK's SpanProcessor. It never waits.
func (s *sender) OnEnd(span sdk.ReadOnlySpan) {
	if span.SpanContext().IsSampled() && s.room() && !s.queue.add(span) {
		s.late()
	}
}

// Export takes a span in OTLP's encoding. It never waits.
func (s *sender) Export(span []byte) {
	if s.room() && !s.queue.encode(span) {
		s.late()
	}
}

// room counts a span in, unless too many wait.
func (s *sender) room() bool {
	if s.waiting.Add(1) <= queueSpans {
		return true
	}
	s.waiting.Add(-1)
	s.counts.dropped(1, droppedFull)
	s.overflow.Add(1)
	return false
}

// late drops a span that has ended after the sender.
func (s *sender) late() {
	s.waiting.Add(-1)
	s.counts.dropped(1, droppedUnsent)
}

// ForceFlush implements the SDK's SpanProcessor. Nobody calls it: spans are sent soon.
func (*sender) ForceFlush(context.Context) error { return nil }

// Shutdown implements the SDK's SpanProcessor. It drops what has not been sent when the
// context ends. If the collector accepts nothing just now, it gets one more try, and
// everything is dropped if that fails: it must not delay the end.
func (s *sender) Shutdown(ctx context.Context) error {
	if !s.queue.close() {
		return nil
	}
	close(s.ending)
	if s.failing.Load() {
		s.hurry()
	}
	defer context.AfterFunc(ctx, s.giveUp)()
	<-s.ended
	s.giveUp()
	for _, c := range []*complaint{&s.unsent, &s.warned, &s.overflown} {
		c.rest()
	}
	return s.outlet.Stop(context.WithoutCancel(ctx))
}

// run sends batches, each when it is full or its first span has waited for gatherFor, until the
// queue is closed and empty.
func (s *sender) run() {
	defer close(s.ended)
	for {
		select {
		case <-s.queue.ready:
		case <-s.queue.due.C:
		case <-s.ending:
			for b := s.queue.take(); b != nil; b = s.queue.take() {
				s.export(b)
			}
			s.overflown.spans += s.overflow.Swap(0)
			return
		}
		if b := s.queue.take(); b != nil {
			s.export(b)
		}
	}
}

// export sends a batch, and counts its spans.
func (s *sender) export(b *batch) {
	size := b.size()
	defer s.queue.reuse(b)
	defer s.waiting.Add(-int64(size))
	wait(s.pausing, time.Until(s.notBefore))
	said := new(answer)
	err := s.send(s.pausing, said, b)
	if err != nil && s.pausing.Err() != nil { // the end interrupted a pause between two tries
		err = s.send(s.sending, said, b)
	}
	if n := s.overflow.Swap(0); n > 0 {
		s.overflown.of(n, "")
	}
	if err != nil {
		s.counts.dropped(size, droppedUnsent)
		s.unsent.of(int64(size), s.secrets.Fit(err.Error()))
		return
	}
	rejected := min(max(said.rejected, 0), size)
	s.counts.exported(size - rejected)
	if rejected > 0 {
		s.counts.dropped(rejected, droppedUnsent)
	}
	if rejected > 0 || said.warning != "" {
		s.warned.of(int64(rejected), s.secrets.Fit(said.warning))
	}
}

// send sends a batch until the collector has taken or refused it, it is too old, or the
// context ends.
func (s *sender) send(ctx context.Context, said *answer, b *batch) error {
	if ctx.Err() != nil {
		return cmp.Or(s.failure, errNoTime)
	}
	ctx, cancel := context.WithTimeout(ctx, keepFor)
	defer cancel()
	tries := 0
	said.tried = func(err error, pause time.Duration) {
		tries++
		s.failing.Store(err != nil)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.notBefore = time.Now().Add(pause)
		if tries > 1 { // what is tried again is logged before it is given up
			s.unsent.of(0, s.secrets.Fit(err.Error()))
		}
		select {
		case <-s.ending:
			s.giveUp()
		default:
		}
	}
	s.failure = s.outlet.upload(listen(ctx, said), b)
	return s.failure
}

func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
