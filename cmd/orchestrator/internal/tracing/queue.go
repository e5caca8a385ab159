package tracing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
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
	// sendWithin bounds a try to send.
	sendWithin = 10 * time.Second
	// keepFor is how long a batch is sent again and again; what the collector takes
	// later than that is of little use, and others wait behind it.
	keepFor = 2 * time.Minute
	// firstPause and maxPause bound the time between two tries, which doubles.
	firstPause = 500 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxAsked bounds the pause that a collector asks for.
	maxAsked = time.Minute
)

// queue sends spans in batches. Whoever ends a span never waits: what does not
// fit is dropped and counted.
type queue struct {
	exporter sdk.SpanExporter
	counts   *counts
	secrets  secrets
	waiting  chan sdk.ReadOnlySpan
	flush    chan chan struct{}

	// ending keeps spans that end from getting behind the last that is sent.
	ending  sync.RWMutex
	closed  bool
	closing chan struct{}
	ended   chan struct{}
	sending context.Context // ends when sending is no longer worth a try
	giveUp  context.CancelFunc

	// Those of the goroutine that sends.
	failure                   error         // of the last try
	pause                     time.Duration // before the last try; zero after success
	notBefore                 time.Time     // of the next try, be it of another batch
	unsent, warned, overflown complaint
	overflow                  atomic.Int64 // spans that are still to be told by overflown
}

var errNoTime = errors.New("there was no time left")

var _ sdk.SpanProcessor = (*queue)(nil)

func newQueue(exporter sdk.SpanExporter, counts *counts, log *slog.Logger, secrets secrets) *queue {
	q := &queue{
		exporter: exporter, counts: counts, secrets: secrets,
		waiting: make(chan sdk.ReadOnlySpan, queueSpans), flush: make(chan chan struct{}),
		closing: make(chan struct{}), ended: make(chan struct{}),
		unsent:    complaint{log: log, message: "spans could not be sent; jobs go on"},
		warned:    complaint{log: log, message: "the collector complains of spans; jobs go on"},
		overflown: complaint{log: log, message: "spans were dropped, because too many wait for the collector; jobs go on"},
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
	q.ending.RLock()
	defer q.ending.RUnlock()
	if q.closed {
		q.counts.dropped(1, droppedUnsent)
		return
	}
	select {
	case q.waiting <- span:
	default:
		q.counts.dropped(1, droppedFull)
		q.overflow.Add(1)
	}
}

func (q *queue) run() {
	defer close(q.ended)
	batch := make([]sdk.ReadOnlySpan, 0, sendSpans)
	gather := time.NewTimer(gatherFor)
	defer gather.Stop()
	defer q.tellRest()
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

// send sends a batch until the collector has taken or refused it, or it has
// become old. What is lost is counted.
func (q *queue) send(batch []sdk.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	for began := time.Now(); ; {
		q.rest()
		said, err := q.try(batch)
		q.tellOverflow()
		if err == nil {
			q.pause = 0
			q.taken(len(batch), said)
			return
		}
		if said.again {
			q.putOff(said.pause)
		}
		if !said.again || q.last() || time.Since(began) >= keepFor {
			q.counts.dropped(len(batch), droppedUnsent)
			q.unsent.of(int64(len(batch)), q.secrets.fit(err.Error()))
			return
		}
		q.unsent.of(0, q.secrets.fit(err.Error()))
	}
}

func (q *queue) try(batch []sdk.ReadOnlySpan) (answer, error) {
	if q.sending.Err() != nil {
		return answer{}, cmp.Or(q.failure, errNoTime)
	}
	var said answer
	ctx, cancel := context.WithTimeout(listen(q.sending, &said), sendWithin)
	defer cancel()
	q.failure = q.exporter.ExportSpans(ctx, batch)
	return said, q.failure
}

// taken counts a batch that the collector took, be it in part.
func (q *queue) taken(spans int, said answer) {
	rejected := min(max(said.rejected, 0), spans)
	q.counts.exported(spans - rejected)
	if rejected > 0 {
		q.counts.dropped(rejected, droppedUnsent)
	}
	if rejected > 0 || said.warning != "" {
		q.warned.of(int64(rejected), q.secrets.fit(said.warning))
	}
}

// last reports whether there is no time for another try. What else waits is not
// sent then either: a collector that takes nothing is not to hold up the end.
func (q *queue) last() bool {
	select {
	case <-q.closing:
		q.giveUp()
		return true
	default:
		return q.sending.Err() != nil
	}
}

// putOff has the collector left alone for as long as it asks for, and the longer the
// more often it has failed.
func (q *queue) putOff(asked time.Duration) {
	q.pause = min(max(2*q.pause, firstPause), maxPause)
	spread := q.pause/2 + rand.N(q.pause/2) // so that not all orchestrators come at once
	q.notBefore = time.Now().Add(max(spread, min(asked, maxAsked)))
}

// rest lasts until the next try, or until the queue is closed. Spans wait meanwhile.
func (q *queue) rest() {
	left := time.Until(q.notBefore)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.closing:
	}
}

func (q *queue) tellOverflow() {
	if n := q.overflow.Swap(0); n > 0 {
		q.overflown.of(n, "")
	}
}

// tellRest logs what has not been logged when the queue ends.
func (q *queue) tellRest() {
	q.overflown.spans += q.overflow.Swap(0)
	for _, c := range []*complaint{&q.unsent, &q.warned, &q.overflown} {
		c.rest()
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
	q.ending.Lock()
	if !q.closed {
		q.closed = true
		close(q.closing)
	}
	q.ending.Unlock()
	stop := context.AfterFunc(ctx, q.giveUp)
	defer stop()
	<-q.ended
	q.giveUp()
	return q.exporter.Shutdown(ctx)
}
