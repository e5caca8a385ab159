package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Settled exports the attempt, whose end is in the ledger now: the waits before it,
// unless Began has exported them, the attempt itself, and how long its lease outlived
// it. Its end was sent to the database at the time given.
func (a *Attempt) Settled(s *job.Settlement, sent time.Time) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		a.exportRetryWait()
		a.exportQueueWaitOnly(s)
	} else {
		a.exportWaits()
		a.exportProcess(s)
	}
	if a.held {
		a.exportLeaseWait(sent)
	}
}

// processAttributes is the most that a process span has, so that the list of each job
// is allocated once.
const processAttributes = 20

// exportProcess exports the handler's run.
func (a *Attempt) exportProcess(s *job.Settlement) {
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
	if a.reapedBy != "" || s.Kind == job.Crash || s.Kind == job.Suspect {
		about = append(about, attrCrashed.Bool(true))
	}
	span.SetAttributes(about...)
	if failed(s.Kind) {
		a.addEvents(span, shownEvents-1)
		a.addError(span, s)
	} else {
		a.addEvents(span, shownEvents)
	}
	span.End(trace.WithTimestamp(a.ended))
}

// Lost exports how long the handler of an attempt ran whose end was refused because the
// lease was lost. The reaper exports the attempt itself.
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
	a.addEvents(span, shownEvents)
	span.End(trace.WithTimestamp(a.ended))
}

// start begins a span beside the others of the job, with the id given, or a random one
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

// attributes are what all spans of an attempt have.
func (a *Attempt) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attrJob.String(a.job.JobID.String()), attrType.String(a.job.jobType), attrTenant.String(a.job.tenant),
		attrAttempt.Int(a.job.attempt), attrFence.Int64(a.job.Fence), attrWorker.String(a.worker),
	}
}
