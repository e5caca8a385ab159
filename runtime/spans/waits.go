package spans

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Began exports the waits before the attempt, whose handler began at the time given. A
// handler may run for hours, and its trace shows the waits meanwhile. Only the first call
// has an effect.
func (a *Attempt) Began(at time.Time) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = at
	a.exportWaits()
}

// exportWaits exports the waits of an attempt whose handler began, once.
func (a *Attempt) exportWaits() {
	if a.waitsExported {
		return
	}
	a.waitsExported = true
	a.exportRetryWait()
	a.startQueueWait(a.began, newSpanID()).end(a.began)
}

// exportRetryWait exports how long the job was not due after the previous attempt. A
// requeued job was dead meanwhile, and did not wait for a retry.
func (a *Attempt) exportRetryWait() {
	if a.job.last == nil || a.requeued() || !a.job.due.After(a.job.last.EndedAt) {
		return
	}
	a.start("retry wait ", trace.SpanKindInternal, a.job.last.EndedAt, newSpanID()).end(a.job.due)
}

// requeued returns whether the job was dead since the previous attempt: it was due after
// that ended, but counts as never tried.
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

// exportQueueWaitOnly exports the one span of an attempt whose handler was not started: its
// wait, with the attempt's id.
func (a *Attempt) exportQueueWaitOnly(s *job.Settlement) {
	span := a.startQueueWait(a.ended, a.own.SpanID())
	a.linkPrevious(span)
	span.set(attrOutcome.String(string(s.Kind)), attrState.String(string(s.To)))
	if s.Code == job.CodeExpired {
		span.set(attrReason.String(s.Error))
	}
	span.end(a.ended)
}

// startQueueWait begins the span of the time from when the job was due until its handler
// began, or it was released.
func (a *Attempt) startQueueWait(until time.Time, id trace.SpanID) *span {
	from := a.job.due
	if a.job.last != nil && a.job.last.EndedAt.After(from) {
		from = a.job.last.EndedAt
	}
	if from.After(until) {
		from = until
	}
	span := a.start("queue wait ", trace.SpanKindInternal, from, id)
	a.addGates(span, from, until)
	return span
}

// addGates says how long of the wait the job was parked, and which gates it has passed. It
// adds nothing for a job without gates.
func (a *Attempt) addGates(span *span, from, until time.Time) {
	if a.job.gates == nil {
		return
	}
	admitted := a.job.admitted
	if admitted.Before(from) {
		admitted = from
	}
	if admitted.After(until) {
		admitted = until
	}
	names := make([]string, len(a.job.gates))
	for i, gate := range a.job.gates {
		names[i] = string(gate)
	}
	span.set(attrGates.StringSlice(names), attrParked.Float64(admitted.Sub(from).Seconds()))
	span.event(eventAdmitted, admitted)
}

// exportLeaseWait exports how long a job was still leased after its handler's process had
// died, so that nobody could run it.
func (a *Attempt) exportLeaseWait(until time.Time) {
	until = a.ended.Add(until.Sub(a.ended)) // however the clock was set meanwhile
	if until.Before(a.ended) {
		until = a.ended
	}
	a.start("lease wait ", trace.SpanKindInternal, a.ended, newSpanID()).end(until)
}
