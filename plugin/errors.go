package plugin

import (
	"errors"
	"fmt"
	"time"
)

// Why an attempt's context has ended; context.Cause returns one of them.
var (
	// ErrCanceled: the job was canceled.
	ErrCanceled = errors.New("job canceled")
	// ErrTimeout: the attempt's time is up.
	ErrTimeout = errors.New("attempt timed out")
	// ErrLeaseLost: the orchestrator can no longer prove that it owns the job;
	// another attempt may start at any moment.
	ErrLeaseLost = errors.New("lease lost")
	// ErrShutdown: the orchestrator shuts down and gives the job back; another
	// attempt will start from the last checkpoint.
	ErrShutdown = errors.New("shutting down")
)

// Codes of failures that the SDK itself words, beside those in wire, which the
// orchestrator acts upon.
const (
	codePanic       = "panic"
	codeBadPayload  = "bad_payload"
	codeBadResult   = "bad_result"
	codeUnknownType = "unknown_type"
	// As the orchestrator words them for processes that do not know its caps.
	codeResultTooLarge     = "result_too_large"
	codeCheckpointTooLarge = "checkpoint_too_large"
)

// Permanent marks err as one that no further attempt can cure: the job is
// dead-lettered. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &steered{err: err, permanent: true}
}

// RetryAfter makes the next attempt, if there is one left, wait d in place of
// the retry policy's backoff. It returns nil for nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &steered{err: err, retryAfter: &d}
}

// Code gives err a short, stable name that is stored with the attempt. It
// returns nil for nil.
func Code(err error, code string) error {
	if err == nil {
		return nil
	}
	return &steered{err: err, code: code}
}

// Snooze ends the attempt without charging it to the job, which is attempted
// again after d.
func Snooze(d time.Duration) error { return &snooze{after: d} }

// Cancel ends the job as canceled, by its handler's own decision. The reason
// goes to the orchestrator's log; it may be nil.
func Cancel(reason error) error { return &cancel{reason: reason} }

// steered is an error with a wish.
type steered struct {
	err        error
	permanent  bool
	retryAfter *time.Duration
	code       string
}

func (e *steered) Error() string { return e.err.Error() }
func (e *steered) Unwrap() error { return e.err }

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
