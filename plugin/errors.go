package plugin

import (
	"errors"
	"fmt"
	"time"
)

// Why an attempt's context has ended; context.Cause returns one of them.
var (
	// ErrCanceled: a client canceled the job.
	ErrCanceled = errors.New("job canceled")
	// ErrTimeout: the attempt's time is up.
	ErrTimeout = errors.New("attempt timed out")
	// ErrLeaseLost: the orchestrator can no longer prove that it owns the job.
	// Another attempt may start at any moment.
	ErrLeaseLost = errors.New("lease lost")
	// ErrShutdown: the orchestrator shuts down and returns the job to the queue.
	// Another attempt starts from the last checkpoint.
	ErrShutdown = errors.New("shutting down")
)

// Codes of failures that the SDK itself reports, besides those of package protocol.
const (
	codePanic       = "panic"
	codeBadPayload  = "bad_payload"
	codeBadResult   = "bad_result"
	codeUnknownType = "unknown_type"
	// The orchestrator uses these too, for plugins that do not know its limits.
	codeResultTooLarge     = "result_too_large"
	codeCheckpointTooLarge = "checkpoint_too_large"
	codeFollowUpsTooLarge  = "followups_too_large"
	// What is wrong with the result of a predecessor.
	codeUnknownPredecessor   = "unknown_predecessor"
	codeBadPredecessorResult = "bad_predecessor_result"
	codeResultOmitted        = "result_omitted"
)

// Permanent marks err as one that no retry can cure: the job is dead-lettered. It
// returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &preference{err: err, permanent: true}
}

// RetryAfter makes the next attempt, if there is one left, wait d instead of the
// retry policy's delay. It returns nil for nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &preference{err: err, retryAfter: &d}
}

// Code gives err a short, stable name that is stored with the attempt. It
// returns nil for nil.
func Code(err error, code string) error {
	if err == nil {
		return nil
	}
	return &preference{err: err, code: code}
}

// Snooze ends the attempt without counting it. The job is attempted again after d.
func Snooze(d time.Duration) error { return &snooze{after: d} }

// Cancel ends the job as canceled: its handler decided so. The reason, which may be
// nil, goes to the orchestrator's log.
func Cancel(reason error) error { return &cancel{reason: reason} }

// preference is an error with what the handler prefers to happen next.
type preference struct {
	err        error
	permanent  bool
	retryAfter *time.Duration
	code       string
}

func (e *preference) Error() string { return e.err.Error() }
func (e *preference) Unwrap() error { return e.err }

type snooze struct{ after time.Duration }

func (e *snooze) Error() string { return fmt.Sprintf("snooze for %s", e.after) }

type cancel struct{ reason error }

func (e *cancel) Error() string {
	if e.reason == nil {
		return "canceled by the handler"
	}
	return "canceled by the handler: " + e.reason.Error()
}
func (e *cancel) Unwrap() error { return e.reason }

// Verdict is what a handler's error asks of the orchestrator. The zero Verdict asks
// for another attempt by the retry policy. It is for tests of handlers.
type Verdict struct {
	// Permanent: do not attempt the job again.
	Permanent bool
	// Canceled: the handler cancels its own job.
	Canceled bool
	// Snoozed: the attempt does not count.
	Snoozed bool
	// RetryAfter is the wait before the next attempt; nil leaves it to the
	// policy.
	RetryAfter *time.Duration
	Code       string
}

// VerdictOf collects what an error, and the errors it wraps or joins, ask for.
// Options combine; of two for the same thing the outermost wins, then the first.
func VerdictOf(err error) Verdict {
	var v Verdict
	v.add(err)
	return v
}

func (v *Verdict) add(err error) {
	switch err := err.(type) { //nolint:errorlint // It looks at each error in turn.
	case *preference:
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
