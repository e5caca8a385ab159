package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Limits on what a span tells of an error, in bytes. The ledger has more.
const (
	maxMessage = 1 << 10
	maxStack   = 4 << 10
)

// Settled tells of the attempt, whose end is in the ledger now: the waits before
// it, the attempt itself, and how long its lease outlived it. Its end was sent to
// the database at that time.
func (a *Attempt) Settled(s *job.Settlement, sent time.Time) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	waited := a.began
	if a.began.IsZero() {
		waited = a.ended
	}
	a.tellRetryWait()
	a.tellQueueWait(waited, s)
	if !a.began.IsZero() {
		a.tellProcess(s)
	}
	if a.lapses {
		a.tellLeaseWait(sent)
	}
}

// tellRetryWait tells how long the job was not due after the attempt before. A
// job that was requeued was dead meanwhile, and did not wait for a retry.
func (a *Attempt) tellRetryWait() {
	if a.job.last == nil || a.requeued() || !a.job.due.After(a.job.last.EndedAt) {
		return
	}
	span := a.start("retry wait "+a.job.jobType, trace.SpanKindInternal, a.job.last.EndedAt, trace.SpanID{})
	span.SetAttributes(a.attributes()...)
	span.End(trace.WithTimestamp(a.job.due))
}

// requeued reports whether the job was dead since the attempt before: it was due
// later than that ended, but counts as never tried.
func (a *Attempt) requeued() bool {
	last := a.job.last
	if last == nil || a.job.attempt > 1 || !a.job.due.After(last.EndedAt) {
		return false
	}
	switch last.Outcome {
	case job.Snoozed, job.GivenBack, job.Suspected: // not charged, and never the end of a job
		return false
	default:
		return true
	}
}

// tellQueueWait tells how long the job was due before its handler began. Of an
// attempt without a handler it is the one span, and has its id.
func (a *Attempt) tellQueueWait(until time.Time, s *job.Settlement) {
	from := a.job.due
	if a.job.last != nil && a.job.last.EndedAt.After(from) {
		from = a.job.last.EndedAt
	}
	if from.After(until) {
		from = until
	}
	var id trace.SpanID
	var links []trace.SpanStartOption
	if a.began.IsZero() {
		id, links = a.own.SpanID(), a.link()
	}
	span := a.start("queue wait "+a.job.jobType, trace.SpanKindInternal, from, id, links...)
	span.SetAttributes(a.attributes()...)
	if a.began.IsZero() {
		span.SetAttributes(attrOutcome.String(string(s.Kind)), attrState.String(string(s.To)))
	}
	span.End(trace.WithTimestamp(until))
}

// processAttributes is how many a process span has at the most. It is told of each
// job, and its list is not to grow on the way.
const processAttributes = 20

// tellProcess tells of the handler's run.
func (a *Attempt) tellProcess(s *job.Settlement) {
	span := a.start("process "+a.job.jobType, trace.SpanKindConsumer, a.began, a.own.SpanID(), a.link()...)
	about := append(make([]attribute.KeyValue, 0, processAttributes), a.attributes()...)
	about = append(about, messaging("process", "process", a.job.jobType)...)
	about = append(about, attrMessage.String(a.job.JobID.String()), attrMaxAttempts.Int(a.job.maxAttempts),
		attrOutcome.String(string(s.Kind)), attrState.String(string(s.To)))
	if s.Plugin != "" {
		about = append(about, attrPlugin.String(s.Plugin), attrPluginVersion.String(s.Version))
	}
	if a.job.resumed {
		about = append(about, attrResumed.Bool(true))
	}
	if a.checkpoints > 0 {
		about = append(about, attrCheckpoints.Int(a.checkpoints))
	}
	if s.To == job.Retry {
		about = append(about, attrRetryDelay.Float64(s.Delay.Seconds()))
	}
	if a.reapedBy != "" {
		about = append(about, attrReapedBy.String(a.reapedBy))
	}
	if a.reapedBy != "" || s.Kind == job.Crash || s.Kind == job.Suspected {
		about = append(about, attrCrashed.Bool(true))
	}
	span.SetAttributes(about...)
	a.tellEvents(span)
	if failed(s.Kind) {
		tellError(span, s, a.ended)
	}
	span.End(trace.WithTimestamp(a.ended))
}

// tellLeaseWait tells how long a job whose handler's process had died was still
// leased, so that nobody could run it.
func (a *Attempt) tellLeaseWait(until time.Time) {
	until = a.ended.Add(until.Sub(a.ended)) // however the clock was set meanwhile
	if until.Before(a.ended) {
		until = a.ended
	}
	span := a.start("lease wait "+a.job.jobType, trace.SpanKindInternal, a.ended, trace.SpanID{})
	span.SetAttributes(a.attributes()...)
	span.End(trace.WithTimestamp(until))
}

// failed reports whether an attempt that ended like this is an error: not what
// was asked for, by a client, the handler, or a worker that stops in good order.
func failed(kind job.OutcomeKind) bool {
	switch kind {
	case job.Success, job.CancelConfirmed, job.GivenBack, job.Snoozed:
		return false
	default:
		return true
	}
}

// tellError tells what went wrong, by the conventions for errors and exceptions.
func tellError(span trace.Span, s *job.Settlement, at time.Time) {
	message := job.CleanText(s.Error, maxMessage)
	span.SetStatus(codes.Error, message)
	span.SetAttributes(attrErrorType.String(string(s.Kind)))
	about := []attribute.KeyValue{attrException.String(string(s.Kind)), attrExceptionText.String(message)}
	if s.Code != "" {
		span.SetAttributes(attrErrorCode.String(s.Code))
		about[0] = attrException.String(s.Code)
	}
	if s.Stack != "" {
		about = append(about, attrExceptionAt.String(job.CleanText(s.Stack, maxStack)))
	}
	span.AddEvent(eventException, trace.WithTimestamp(at), trace.WithAttributes(about...))
}

// Lost tells of an attempt whose end was refused, because the lease was lost:
// how long its handler ran. The reaper tells of the attempt itself.
func (a *Attempt) Lost(s *job.Settlement) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		return
	}
	span := a.start("lease lost "+a.job.jobType, trace.SpanKindInternal, a.began, trace.SpanID{}, linkTo(a.own, linkReaped))
	span.SetAttributes(a.attributes()...)
	span.SetAttributes(attrOutcome.String(string(s.Kind)), attrErrorType.String("lease_lost"))
	span.SetStatus(codes.Error, "the attempt ended too late: its lease was lost, and its end refused")
	a.tellEvents(span)
	span.End(trace.WithTimestamp(a.ended))
}

// start begins a span beside the others of the job. It has the id, or a random one
// when that is zero.
func (a *Attempt) start(name string, kind trace.SpanKind, at time.Time, id trace.SpanID, more ...trace.SpanStartOption) trace.Span {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), a.parent)
	if id.IsValid() {
		ctx = withID(ctx, id)
	}
	_, span := a.tracer.Start(ctx, name, append(more, trace.WithSpanKind(kind), trace.WithTimestamp(at))...)
	return span
}

// link leads to the attempt before; the first has none.
func (a *Attempt) link() []trace.SpanStartOption {
	if a.job.Fence < 2 {
		return nil
	}
	what := linkPrevious
	if a.requeued() {
		what = linkRequeued
	}
	return []trace.SpanStartOption{linkTo(a.own.WithSpanID(attemptID(a.job.JobID, a.job.Fence-1)), what)}
}

// attributes are those that all spans of an attempt have.
func (a *Attempt) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attrJob.String(a.job.JobID.String()), attrType.String(a.job.jobType), attrTenant.String(a.job.tenant),
		attrAttempt.Int(a.job.attempt), attrFence.Int64(a.job.Fence), attrWorker.String(a.worker),
	}
}

// tellEvents tells them as within the span, however the clock was set meanwhile.
func (a *Attempt) tellEvents(span trace.Span) {
	for _, e := range a.events {
		switch {
		case e.at.Before(a.began):
			e.at = a.began
		case e.at.After(a.ended):
			e.at = a.ended
		}
		span.AddEvent(e.name, trace.WithTimestamp(e.at))
	}
}
