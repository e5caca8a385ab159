// Package spans makes the trace of a job: how it was sent, waited, was processed, failed,
// and waited again. docs/adr/0009-one-trace-per-job.md has the reasons, and
// docs/reference/telemetry.md the contents.
package spans

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Tracer makes the spans of jobs. A nil one makes none.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer, or nil for a nil tracer. The tracer's provider must use IDs to
// make ids, and a sampler that asks Sampled.
func New(tracer trace.Tracer) *Tracer {
	if tracer == nil {
		return nil
	}
	return &Tracer{tracer: tracer}
}

// Sent is the span of a submission. A nil one is none.
type Sent struct{ span trace.Span }

// Send begins the span of a submission within the span of the request, and puts its
// context into the submission. If the request is not sampled there is no span, and the
// submission keeps the request's context.
func (t *Tracer) Send(ctx context.Context, s *job.Submission) *Sent {
	if t == nil {
		return nil
	}
	return t.send(ctx, s, false)
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
	return t.send(trace.ContextWithSpanContext(context.Background(), parent), s, false)
}

func (t *Tracer) send(ctx context.Context, s *job.Submission, oneOfMany bool) *Sent {
	request := trace.SpanContextFromContext(ctx)
	if !request.IsSampled() {
		if request.IsValid() && s.Trace.Parent == "" {
			s.Trace = carried(request, s.Trace.Baggage)
		}
		return nil
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(sending(s)...),
	}
	if oneOfMany {
		ctx = withSampling(ctx)
		options = append(options, trace.WithNewRoot(), linkTo(request, linkRequest))
	} else {
		options = append(options, trace.WithTimestamp(within(trace.SpanFromContext(ctx))))
	}
	_, span := t.tracer.Start(ctx, "send "+s.Type, options...)
	s.Trace = carried(span.SpanContext(), s.Trace.Baggage)
	return &Sent{span: span}
}

// SendTick begins the trace of a job that a schedule makes at a tick, and puts its context
// into the submission.
func (t *Tracer) SendTick(s *job.Submission, schedule string, tick time.Time) *Sent {
	if t == nil {
		return nil
	}
	_, span := t.tracer.Start(context.Background(), "send "+s.Type,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(sending(s)...),
		trace.WithAttributes(attrSchedule.String(schedule), attrTick.String(tick.UTC().Format(time.RFC3339))))
	s.Trace = carried(span.SpanContext(), s.Trace.Baggage)
	return &Sent{span: span}
}

// sending are the attributes of the span of a submission.
func sending(s *job.Submission) []attribute.KeyValue {
	return append(messaging("send", "send", s.Type),
		attrType.String(s.Type), attrTenant.String(s.Tenant), attrPriority.Int(int(s.Priority)),
		attrBodySize.Int(len(s.Payload)), attrMaxAttempts.Int(s.MaxAttempts))
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
	if s == nil {
		return
	}
	if submitted.Err != nil {
		kind, text := failure(submitted.Err)
		s.span.SetAttributes(attrErrorType.String(kind))
		s.span.SetStatus(codes.Error, text)
	} else {
		id := submitted.Receipt.ID.String()
		s.span.SetAttributes(attrJob.String(id), attrMessage.String(id),
			attrState.String(string(submitted.Receipt.State)), attrReplayed.Bool(submitted.Receipt.Replayed))
		if submitted.Receipt.Duplicate {
			s.span.SetAttributes(attrDuplicate.Bool(true))
		}
	}
	s.span.End()
}

// SentAll are the spans of a batch that is stored as a whole, or none.
type SentAll []*Sent

// SendAll is Send for each submission of a request that has many, but each span begins a
// trace of its own, which is linked to the request.
func (t *Tracer) SendAll(ctx context.Context, batch []job.Submission) SentAll {
	if t == nil {
		return nil
	}
	all := make(SentAll, len(batch))
	for i := range batch {
		all[i] = t.send(ctx, &batch[i], true)
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

// messaging are the attributes of the conventions for messaging.
func messaging(name, kind, jobType string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attrSystem.String("holdfast"), attrOperation.String(name), attrOperationType.String(kind),
		attrDestination.String(jobType),
	}
}

func linkTo(to trace.SpanContext, what string) trace.SpanStartOption {
	return trace.WithLinks(trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attrLink.String(what)}})
}

// carried is the context as a job carries it, with its baggage.
func carried(c trace.SpanContext, baggage string) job.Trace {
	var flags [2]byte
	hex.Encode(flags[:], []byte{byte(c.TraceFlags())})
	return job.Trace{
		Parent: strings.Join([]string{"00", c.TraceID().String(), c.SpanID().String(), string(flags[:])}, "-"),
		State:  c.TraceState().String(), Baggage: baggage,
	}
}

// sampled reads the context that a job carries, and returns whether it is sampled. A
// malformed one is not.
func sampled(carried job.Trace) (trace.SpanContext, bool) {
	const length, inSpan, inFlags = 55, 36, 53 // 00-<32 digits>-<16 digits>-<2 digits>
	text := carried.Parent
	if len(text) != length {
		return trace.SpanContext{}, false
	}
	flags, err := strconv.ParseUint(text[inFlags:], 16, 8)
	if err != nil || !trace.TraceFlags(flags).IsSampled() {
		return trace.SpanContext{}, false
	}
	traceID, inTrace := trace.TraceIDFromHex(text[3 : inSpan-1])
	spanID, err := trace.SpanIDFromHex(text[inSpan : inFlags-1])
	state, inState := trace.ParseTraceState(carried.State)
	if inState != nil {
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags), TraceState: state, Remote: true,
	}), inTrace == nil && err == nil
}
