package spans

import (
	"time"

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

// exportProcess exports the handler's run.
func (a *Attempt) exportProcess(s *job.Settlement) {
	span := a.start("process ", trace.SpanKindConsumer, a.began, a.own.SpanID())
	a.linkPrevious(span)
	span.messaging("process", a.job.jobType)
	span.set(attrMessage.String(a.job.id), attrMaxAttempts.Int(a.job.maxAttempts),
		attrOutcome.String(string(s.Kind)), attrState.String(string(s.To)))
	if s.Plugin != "" {
		span.set(attrPlugin.String(s.Plugin), attrPluginVersion.String(s.Version))
	}
	if a.job.resumed {
		span.set(attrResumed.Bool(true))
	}
	if a.checkpoints > 0 {
		span.set(attrCheckpoints.Int(a.checkpoints))
	}
	if s.To == job.Retry {
		span.set(attrRetryDelay.Float64(s.Delay.Seconds()))
	}
	if a.reapedBy != "" {
		span.set(attrReapedBy.String(a.reapedBy))
	}
	if a.reapedBy != "" || s.Kind == job.Crash || s.Kind == job.Suspect {
		span.set(attrCrashed.Bool(true))
	}
	if failed(s.Kind) {
		a.addEvents(span, shownEvents-1)
		a.addError(span, s)
	} else {
		a.addEvents(span, shownEvents)
	}
	span.end(a.ended)
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
	span := a.start("lease lost ", trace.SpanKindInternal, a.began, newSpanID())
	span.link(a.own, linkReaped)
	span.set(attrOutcome.String(string(s.Kind)), attrErrorType.String("lease_lost"))
	span.fail("the attempt ended too late: its lease was lost, and its end refused")
	a.addEvents(span, shownEvents)
	span.end(a.ended)
}

// start begins a span beside the others of the job, with what all spans of an attempt have.
func (a *Attempt) start(what string, kind trace.SpanKind, at time.Time, id trace.SpanID) *span {
	span := begin(a.exporter, a.own.WithSpanID(id), a.parent, kind, what, a.job.jobType, at)
	span.set(attrJob.String(a.job.id), attrType.String(a.job.jobType), attrTenant.String(a.job.tenant),
		attrAttempt.Int(a.job.attempt), attrFence.Int64(a.job.Fence), attrWorker.String(a.worker))
	return span
}

// linkPrevious adds a link to the attempt before; the first has none.
func (a *Attempt) linkPrevious(span *span) {
	if a.job.Fence < 2 {
		return
	}
	what := linkPrevious
	if a.requeued() {
		what = linkRequeued
	}
	span.link(a.own.WithSpanID(attemptID(a.job.JobID, a.job.Fence-1)), what)
}
