package plugin

import (
	"errors"
	"time"
)

// Verdict is what a handler's error asks of the orchestrator; the zero Verdict
// asks for another attempt by the retry policy. Handlers' tests look at it.
type Verdict struct {
	// Permanent says that the job is not to be attempted again.
	Permanent bool
	// Canceled says that the handler cancels its own job.
	Canceled bool
	// Snoozed says that the attempt does not count.
	Snoozed bool
	// RetryAfter is the wait before the next attempt; nil leaves it to the
	// policy.
	RetryAfter *time.Duration
	Code       string
}

// VerdictOf collects what the errors in a chain ask for. Wishes add up; of two
// for the same thing the outer one counts.
func VerdictOf(err error) Verdict {
	var v Verdict
	if later := new(snooze); errors.As(err, &later) {
		v.Snoozed, v.RetryAfter = true, &later.after
	}
	v.Canceled = errors.As(err, new(*cancel))
	for next := new(steered); errors.As(err, &next); err = next.err {
		v.Permanent = v.Permanent || next.permanent
		if v.RetryAfter == nil {
			v.RetryAfter = next.retryAfter
		}
		if v.Code == "" {
			v.Code = next.code
		}
	}
	return v
}
