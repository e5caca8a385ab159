package spans

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Began exports the waits before the attempt: its handler began at that time. A
// handler may run for hours, and its trace shows the waits meanwhile. Only the first
// call has an effect.
func (a *Attempt) Began(at time.Time) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = at
	a.tellWaits()
}

// tellWaits exports the waits of an attempt whose handler began, once.
func (a *Attempt) tellWaits() {
	if a.waitsTold {
		return
	}
	a.waitsTold = true
	a.tellRetryWait()
	a.startQueueWait(a.began, trace.SpanID{}).End(trace.WithTimestamp(a.began))
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
	case job.Snoozed, job.Released, job.Suspect: // not charged, and never the end of a job
		return false
	default:
		return true
	}
}

// tellQueueWaitOnly exports the one span of an attempt without a handler: its wait,
// which has the attempt's id.
func (a *Attempt) tellQueueWaitOnly(s *job.Settlement) {
	span := a.startQueueWait(a.ended, a.own.SpanID(), a.link()...)
	span.SetAttributes(attrOutcome.String(string(s.Kind)), attrState.String(string(s.To)))
	span.End(trace.WithTimestamp(a.ended))
}

// startQueueWait begins the span of the time for which the job was due before its
// handler began, or it was given back.
func (a *Attempt) startQueueWait(until time.Time, id trace.SpanID, links ...trace.SpanStartOption) trace.Span {
	from := a.job.due
	if a.job.last != nil && a.job.last.EndedAt.After(from) {
		from = a.job.last.EndedAt
	}
	if from.After(until) {
		from = until
	}
	span := a.start("queue wait "+a.job.jobType, trace.SpanKindInternal, from, id, links...)
	span.SetAttributes(a.attributes()...)
	return span
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
