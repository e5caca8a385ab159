package plugin

import "time"

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

// VerdictOf collects what an error and those that it wraps or joins ask for.
// Wishes add up; of two for the same thing the outer one counts, then the
// first.
func VerdictOf(err error) Verdict {
	var v Verdict
	v.add(err)
	return v
}

func (v *Verdict) add(err error) {
	switch err := err.(type) { //nolint:errorlint // It looks at each error in turn.
	case *steered:
		v.Permanent = v.Permanent || err.permanent
		if v.RetryAfter == nil {
			v.RetryAfter = err.retryAfter
		}
		if v.Code == "" {
			v.Code = err.code
		}
		v.add(err.err)
	case *snooze:
		v.Snoozed = true
		if v.RetryAfter == nil {
			v.RetryAfter = &err.after
		}
	case *cancel:
		v.Canceled = true
	case interface{ Unwrap() error }:
		v.add(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, joined := range err.Unwrap() {
			v.add(joined)
		}
	}
}
