package tracing

import (
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// scopeSpans is the field of OTLP's message ScopeSpans that has the spans.
const scopeSpans protowire.Number = 2

// spareBatches is how many batches are kept for use, with their memory: some 400 KB each.
const spareBatches = 4

// batch is what is sent at once: at most sendSpans spans.
type batch struct {
	// jobs are the spans of jobs, of which there are encoded: fields of ScopeSpans.
	jobs    []byte
	encoded int
	// others are those of the SDK.
	others []sdk.ReadOnlySpan
}

func (b *batch) size() int { return b.encoded + len(b.others) }

func (b *batch) full() bool { return b.size() >= sendSpans }

// queue has the spans that are to be sent, in batches. It is safe for concurrent use. Nobody
// is woken for a span: only when the first has waited for gatherFor, or a batch is full.
type queue struct {
	// ready has something in it when a batch is full, and due when the first span of one has
	// waited long enough. Either may be too early by a batch.
	ready chan struct{}
	due   *time.Timer

	mu      sync.Mutex
	batches []*batch // all but the last are full, and none is empty
	spare   []*batch // to be used again
	closed  bool
}

func newQueue() *queue {
	q := &queue{ready: make(chan struct{}, 1), due: time.NewTimer(gatherFor)}
	q.due.Stop()
	return q
}

// encode adds an encoded span, and returns false if the queue is closed.
func (q *queue) encode(span []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.room()
	if b == nil {
		return false
	}
	b.jobs = protowire.AppendBytes(protowire.AppendTag(b.jobs, scopeSpans, protowire.BytesType), span)
	b.encoded++
	q.added(b)
	return true
}

// add adds a span of the SDK, and returns false if the queue is closed.
func (q *queue) add(span sdk.ReadOnlySpan) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.room()
	if b == nil {
		return false
	}
	b.others = append(b.others, span)
	q.added(b)
	return true
}

// room returns a batch that is not full, or nil if the queue is closed.
func (q *queue) room() *batch {
	if q.closed {
		return nil
	}
	if n := len(q.batches); n > 0 && !q.batches[n-1].full() {
		return q.batches[n-1]
	}
	b := new(batch)
	if n := len(q.spare); n > 0 {
		b, q.spare = q.spare[n-1], q.spare[:n-1]
	}
	q.batches = append(q.batches, b)
	return b
}

// added wakes the sender if it is time.
func (q *queue) added(b *batch) {
	switch {
	case len(q.batches) > 1: // The sender is busy, and will look.
	case b.full():
		q.wake()
	case b.size() == 1:
		q.due.Reset(gatherFor)
	}
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the first batch, or nil for none. The sender is woken for the next.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return nil
	}
	b := q.batches[0]
	q.batches = append(q.batches[:0], q.batches[1:]...)
	switch {
	case len(q.batches) == 0:
	case q.batches[0].full():
		q.wake()
	default:
		q.due.Reset(gatherFor)
	}
	return b
}

// reuse takes a batch back that has been sent or dropped.
func (q *queue) reuse(b *batch) {
	clear(b.others)
	b.jobs, b.encoded, b.others = b.jobs[:0], 0, b.others[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.spare) < spareBatches {
		q.spare = append(q.spare, b)
	}
}

// close makes the queue refuse spans. What it has can be taken. It returns false if it was closed
// before.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	open := !q.closed
	q.closed = true
	return open
}
