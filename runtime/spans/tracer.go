// Package spans makes the trace of a job: how it was sent, waited, was processed, failed,
// and waited again. docs/adr/0009-one-trace-per-job.md has the reasons, and
// docs/reference/telemetry.md the contents.
package spans

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Tracer makes the spans of jobs. A nil one makes none.
type Tracer struct{ exporter Exporter }

// New returns a Tracer, or nil for a nil exporter.
func New(exporter Exporter) *Tracer {
	if exporter == nil {
		return nil
	}
	return &Tracer{exporter: exporter}
}

// Sent is the span of a submission. A nil one is none.
type Sent struct{ span *span }

// Send begins the span of a submission within the span of the request, and puts its
// context into the submission. If the request is not sampled there is no span, and the
// submission keeps the request's context.
func (t *Tracer) Send(ctx context.Context, s *job.Submission) *Sent {
	if t == nil {
		return nil
	}
	request := trace.SpanContextFromContext(ctx)
	if !request.IsSampled() {
		keep(carried(request, ""), s)
		return nil
	}
	return &Sent{span: t.sending(s, request, request.TraceID(), within(trace.SpanFromContext(ctx)))}
}

// keep gives a submission that has no context that of its request, which is not sampled.
func keep(request job.Trace, s *job.Submission) {
	if s.Trace.Parent == "" {
		s.Trace.Parent, s.Trace.State = request.Parent, request.State
	}
}

// SendWithin is Send for what a handler has submitted. The span is a child of the
// attempt's, whose context is given. If that is not sampled there is no span, and the
// submission keeps its context.
func (t *Tracer) SendWithin(attempt job.Trace, s *job.Submission) *Sent {
	if t == nil {
		return nil
	}
	parent, ok := sampled(attempt)
	if !ok {
		return nil
	}
	return &Sent{span: t.sending(s, parent, parent.TraceID(), time.Now())}
}

// SendTick begins the trace of a job that a schedule makes at a tick, and puts its context
// into the submission.
func (t *Tracer) SendTick(s *job.Submission, schedule string, tick time.Time) *Sent {
	if t == nil {
		return nil
	}
	id := newTraceID()
	if !t.exporter.Sampled(id) {
		own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: newSpanID()})
		s.Trace = carried(own, s.Trace.Baggage)
		return nil
	}
	span := t.sending(s, trace.SpanContext{}, id, time.Now())
	span.set(attrSchedule.String(schedule), attrTick.String(tick.UTC().Format(time.RFC3339)))
	return &Sent{span: span}
}

// sending begins the span of a submission, and puts its context into the submission. A parent
// that is not valid is none.
func (t *Tracer) sending(s *job.Submission, parent trace.SpanContext, traceID trace.TraceID, at time.Time) *span {
	own := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: newSpanID(), TraceFlags: parent.TraceFlags() | trace.FlagsSampled, TraceState: parent.TraceState(),
	})
	span := begin(t.exporter, own, parent, trace.SpanKindProducer, "send ", s.Type, at)
	span.messaging("send", s.Type)
	span.set(attrType.String(s.Type), attrTenant.String(s.Tenant), attrPriority.Int(int(s.Priority)),
		attrBodySize.Int(len(s.Payload)), attrMaxAttempts.Int(s.MaxAttempts))
	s.Trace = carried(own, s.Trace.Baggage)
	return span
}

// within is this moment, measured from the span's beginning by the monotonic clock. So
// what begins now lies within that span even if the clock is set meanwhile.
func within(span trace.Span) time.Time {
	if recorded, ok := span.(interface{ StartTime() time.Time }); ok {
		began := recorded.StartTime()
		return began.Add(time.Since(began))
	}
	return time.Now()
}

// Done ends the span with what became of the submission.
func (s *Sent) Done(submitted job.Submitted) {
	if s == nil || s.span == nil {
		return
	}
	span := s.span
	s.span = nil
	if submitted.Err != nil {
		kind, text := failure(submitted.Err)
		span.set(attrErrorType.String(kind))
		span.fail(text)
	} else {
		id := submitted.Receipt.ID.String()
		span.set(attrJob.String(id), attrMessage.String(id),
			attrState.String(string(submitted.Receipt.State)), attrReplayed.Bool(submitted.Receipt.Replayed))
		if submitted.Receipt.Duplicate {
			span.set(attrDuplicate.Bool(true))
		}
	}
	span.endNow()
}

// SentAll are the spans of a batch that is stored as a whole, or none.
type SentAll []*Sent

// SendAll is Send for each submission of a request that has many, but each span begins a
// trace of its own, which is linked to the request.
func (t *Tracer) SendAll(ctx context.Context, batch []job.Submission) SentAll {
	if t == nil {
		return nil
	}
	request := trace.SpanContextFromContext(ctx)
	if !request.IsSampled() {
		of := carried(request, "")
		for i := range batch {
			keep(of, &batch[i])
		}
		return nil
	}
	all := make(SentAll, len(batch))
	for i := range batch { // sampled because their request is, whatever the ratio
		span := t.sending(&batch[i], trace.SpanContext{}, newTraceID(), time.Now())
		span.link(request, linkRequest)
		all[i] = &Sent{span: span}
	}
	return all
}

// Done ends the spans. An error of one job means that none was stored.
func (all SentAll) Done(results []job.Submitted, err error) {
	refused := err
	for _, result := range results {
		if result.Err != nil && refused == nil {
			refused = errBatchRefused
		}
	}
	for i, sent := range all {
		submitted := job.Submitted{Err: refused}
		if i < len(results) && (refused == nil || results[i].Err != nil) {
			submitted = results[i]
		}
		sent.Done(submitted)
	}
}

// errBatchRefused says that a job was not stored because of another job of its batch.
var errBatchRefused = errors.New("another job of the batch was refused")

// failures are the errors with a name; the first match counts, because an unavailable
// database may also be a context's error.
var failures = []struct {
	kind string
	err  error
}{
	{"key_reused", job.ErrKeyReused},
	{"bad_data", job.ErrBadData},
	{"lease_lost", job.ErrLeaseLost},
	{"batch_refused", errBatchRefused},
	{"unavailable", job.ErrUnavailable},
	{"deadline_exceeded", context.DeadlineExceeded},
	{"canceled", context.Canceled},
}

// failure names what went wrong with a submission, without the database's own text, which
// may contain parts of the payload.
func failure(err error) (kind, text string) {
	for _, known := range failures {
		if errors.Is(err, known.err) {
			return known.kind, known.err.Error()
		}
	}
	return "_OTHER", "could not be stored"
}

// messaging adds the attributes of the conventions for messaging.
func (s *span) messaging(operation, jobType string) {
	s.set(attrSystem.String("holdfast"), attrOperation.String(operation), attrOperationType.String(operation),
		attrDestination.String(jobType))
}

// The form of a context as a job carries it: 00-<32 digits>-<16 digits>-<2 digits>.
const parentLength, spanAt, flagsAt = 55, 36, 53

// carried is the context as a job carries it, with its baggage. One that is not valid is none.
func carried(c trace.SpanContext, baggage string) job.Trace {
	if !c.IsValid() {
		return job.Trace{Baggage: baggage}
	}
	traceID, spanID := c.TraceID(), c.SpanID()
	var text [parentLength]byte
	parent := hex.AppendEncode(append(text[:0], "00-"...), traceID[:])
	parent = hex.AppendEncode(append(parent, '-'), spanID[:])
	parent = hex.AppendEncode(append(parent, '-'), []byte{byte(c.TraceFlags())})
	return job.Trace{Parent: string(parent), State: c.TraceState().String(), Baggage: baggage}
}

// sampled reads the context that a job carries, and returns whether it is sampled. A
// malformed one is not.
func sampled(carried job.Trace) (trace.SpanContext, bool) {
	text := carried.Parent
	if len(text) != parentLength {
		return trace.SpanContext{}, false
	}
	flags, err := strconv.ParseUint(text[flagsAt:], 16, 8)
	if err != nil || !trace.TraceFlags(flags).IsSampled() {
		return trace.SpanContext{}, false
	}
	traceID, inTrace := trace.TraceIDFromHex(text[3 : spanAt-1])
	spanID, err := trace.SpanIDFromHex(text[spanAt : flagsAt-1])
	state, inState := trace.ParseTraceState(carried.State)
	if inState != nil {
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags), TraceState: state, Remote: true,
	}), inTrace == nil && err == nil
}
