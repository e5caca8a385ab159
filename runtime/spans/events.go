package spans

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Limits on what a span has of an error, in bytes. The ledger has more.
const (
	maxMessage = 1 << 10
	maxStack   = 4 << 10
)

// shownEvents is how many events of a span Jaeger's page shows without a click, earliest
// first. The error of an attempt must be one of them.
const shownEvents = 3

type event struct {
	name string
	at   time.Time
}

// addEvents adds the events by their time. The last checkpoint is one of them if that
// makes no more events than most.
func (a *Attempt) addEvents(span *span, most int) {
	events := a.events
	if a.checkpoints > 0 && len(events) < most {
		later := slices.IndexFunc(events, func(e event) bool { return e.at.After(a.lastCheckpoint) })
		if later < 0 {
			later = len(events)
		}
		events = slices.Insert(slices.Clone(events), later, event{EventCheckpoint, a.lastCheckpoint})
	}
	for _, e := range events {
		span.event(e.name, a.inside(e.at))
	}
}

// inside returns the time, or the nearest one that Jaeger shows within the attempt, in
// case the clock was set meanwhile. Jaeger truncates the beginning and the length of a
// span to microseconds, so the span may end one microsecond early, and its page hides
// events behind the end of the trace.
func (a *Attempt) inside(at time.Time) time.Time {
	if latest := a.ended.Add(-time.Microsecond); at.After(latest) {
		at = latest
	}
	if at.Before(a.began) {
		at = a.began
	}
	return at
}

// failed returns whether an attempt that ended like this is an error. What a client, the
// handler, or a worker that shuts down asked for is none.
func failed(kind job.OutcomeKind) bool {
	switch kind {
	case job.Success, job.CancelConfirmed, job.Released, job.Snoozed:
		return false
	default:
		return true
	}
}

// addError adds what went wrong, by the conventions for errors and exceptions.
func (a *Attempt) addError(span *span, s *job.Settlement) {
	message := job.CleanText(s.Error, maxMessage)
	span.fail(a.verdict(s, message))
	span.set(attrErrorType.String(string(s.Kind)))
	about := []attribute.KeyValue{attrException.String(string(s.Kind)), attrExceptionText.String(message)}
	if s.Code != "" {
		span.set(attrErrorCode.String(s.Code))
		about[0] = attrException.String(s.Code)
	}
	if s.Stack != "" {
		about = append(about, attrExceptionAt.String(job.CleanText(s.Stack, maxStack)))
	}
	span.event(eventException, a.inside(a.ended), about...)
}

// verdict says which attempt of the job it was, what went wrong, and what follows.
func (a *Attempt) verdict(s *job.Settlement, message string) string {
	if message == "" {
		message = string(s.Kind)
	}
	return fmt.Sprintf("attempt %d of %d: %s; %s", a.job.attempt, a.job.maxAttempts, message, next(s))
}

// next says what becomes of the job after a failed attempt.
func next(s *job.Settlement) string {
	switch {
	case s.To == job.Retry && s.Delay == 0:
		return "retry at once"
	case s.To == job.Retry && s.Delay < time.Second:
		return fmt.Sprintf("retry in %d ms", s.Delay.Milliseconds())
	case s.To == job.Retry && s.Delay < time.Minute:
		return fmt.Sprintf("retry in %.1f s", s.Delay.Seconds())
	case s.To == job.Retry:
		return "retry in " + s.Delay.Round(time.Second).String()
	case s.To == job.Queued:
		return "queued again"
	default:
		return string(s.To)
	}
}
