package job

import (
	"fmt"
	"time"
)

// MaxInterruptions is how often a job is released uncharged because its owner vanished.
// After that the loss is charged like a crash, so that a job that brings its whole machine
// down is dead-lettered in the end.
const MaxInterruptions = 5

// DefaultMaxCrashes is how many plugin processes may die under a job by default.
const DefaultMaxCrashes = 3

// History is what is known about a job when an attempt at it ends.
type History struct {
	// Attempt counts from 1 and includes the one that has just ended.
	Attempt     int
	MaxAttempts int
	// Interruptions is how often an owner vanished under the job before.
	Interruptions int
	// Crashes is how many plugin processes had died under the job, or had to be killed
	// because of it, since an attempt at it last ended in another way. Only the first of
	// them makes it a suspect without a charge: from then on it runs isolated.
	Crashes int
	// MaxCrashes is how many of them make it dead; at least 1.
	MaxCrashes int
	// CancelRequested turns every outcome but success into a cancel.
	CancelRequested bool
}

// Decision is what becomes of a job after an attempt.
type Decision struct {
	// To is the job's next state.
	To State
	// Kind is the outcome that the attempt is recorded with.
	Kind OutcomeKind
	// Delay is the wait before the job is due again; only for Retry.
	Delay time.Duration
	// Attempt is the number of charged attempts that the job has from now on.
	Attempt int
	// Interruptions is the job's new count of them.
	Interruptions int
	// Crashes is the job's new count of them. As long as it is above 0, the
	// next attempt runs in a process of its own.
	Crashes int
}

// Decide says what becomes of a job whose attempt ended with the outcome. It is pure: the
// caller draws the jitter, in [0, 1).
func Decide(policy RetryPolicy, at History, outcome Outcome, jitter float64) Decision {
	charged := Decision{
		Kind: outcome.Kind, Attempt: at.Attempt, Interruptions: at.Interruptions, Crashes: at.crashesAfter(outcome),
	}
	uncharged := charged
	uncharged.Attempt = max(at.Attempt-1, 0)

	if outcome.Kind == Success {
		return charged.to(Succeeded)
	}
	if at.CancelRequested || outcome.Kind == CancelConfirmed {
		charged.Kind = CancelConfirmed
		return charged.to(Canceled)
	}
	switch outcome.Kind {
	case PermanentFailure:
		return charged.to(Dead)
	case Released:
		if outcome.RetryAfter != nil {
			return uncharged.retryIn(*outcome.RetryAfter)
		}
		return uncharged.to(Queued)
	case Snoozed:
		return uncharged.retryIn(wish(outcome.RetryAfter, policy.Delay(1, jitter)))
	case Interrupted:
		if at.Interruptions < MaxInterruptions {
			uncharged.Interruptions++
			return uncharged.to(Queued)
		}
	case Crash, Suspect:
		if at.Crashes == 0 && (outcome.CoResidents > 0 || outcome.Kind == Suspect) {
			uncharged.Kind = Suspect
			return uncharged.to(Queued)
		}
		charged.Kind = Crash
		if charged.Crashes >= at.MaxCrashes {
			return charged.to(Dead)
		}
	case Failure, Timeout, LeaseExpired, Success, CancelConfirmed:
	}
	if at.Attempt >= at.MaxAttempts {
		return charged.to(Dead)
	}
	if outcome.Kind == Timeout && policy.ImmediateAfterTimeout {
		return charged.retryIn(0)
	}
	return charged.retryIn(wish(outcome.RetryAfter, policy.Delay(at.Attempt, jitter)))
}

// Reason is what is stored as the error of an attempt with this outcome and decision: the
// outcome's message, and how often processes have died under the job if that is why it is
// not simply retried.
func (d Decision) Reason(outcome Outcome) string {
	switch {
	case d.Kind == Suspect && outcome.CoResidents == 1:
		return "its handler's process died with another attempt in it: " + outcome.Message
	case d.Kind == Suspect:
		return fmt.Sprintf("its handler's process died with %d other attempts in it: %s", outcome.CoResidents, outcome.Message)
	case d.Kind == Crash && d.To == Dead && d.Crashes > 1 && outcome.CoResidents == 0:
		return fmt.Sprintf("its handler's process died %d times under it, the last time alone: %s", d.Crashes, outcome.Message)
	case d.Kind == Crash && d.To == Dead && d.Crashes > 1:
		return fmt.Sprintf("its handler's process died %d times under it: %s", d.Crashes, outcome.Message)
	}
	return outcome.Message
}

// crashesAfter is the count of crashes after an attempt that ended like this. An attempt
// that its owner stopped or lost, or that had no process yet, says nothing about the job:
// if it cleared a suspect, the job could bring down one process after another, uncharged.
func (at History) crashesAfter(outcome Outcome) int {
	switch {
	case outcome.Kind == Timeout && outcome.Killed:
		return at.Crashes + 1 // so that it cannot take others along next time
	case outcome.Kind == Timeout && outcome.Code == CodeNoProcess:
		return at.Crashes
	}
	switch outcome.Kind {
	case Crash, Suspect:
		return at.Crashes + 1
	case Released, Interrupted, LeaseExpired:
		return at.Crashes
	case Success, Failure, PermanentFailure, Timeout, Snoozed, CancelConfirmed:
	}
	return 0
}

func (d Decision) to(s State) Decision {
	d.To = s
	return d
}

func (d Decision) retryIn(delay time.Duration) Decision {
	d.To, d.Delay = Retry, max(delay, 0)
	return d
}

func wish(asked *time.Duration, otherwise time.Duration) time.Duration {
	if asked != nil {
		return *asked
	}
	return otherwise
}
