package job

import "time"

// MaxInterruptions is how often a job is given back uncharged because its
// owner vanished. From then on the loss is charged like a crash, so that a
// job that brings its whole machine down is dead-lettered in the end.
const MaxInterruptions = 5

// Standing is what is known about a job when an attempt at it ends.
type Standing struct {
	// Attempt counts from 1 and includes the one that has just ended.
	Attempt     int
	MaxAttempts int
	// Interruptions is how often an owner vanished under the job before.
	Interruptions int
	// CancelRequested turns every outcome but success into a cancel.
	CancelRequested bool
}

// Decision is what becomes of a job after an attempt.
type Decision struct {
	// To is the state the job passes to.
	To State
	// Kind is the outcome that the attempt is recorded with.
	Kind OutcomeKind
	// Delay is the wait before the job is due again; only for Retry.
	Delay time.Duration
	// Attempt is the number of charged attempts that the job has from now on.
	Attempt int
	// Interruptions is the job's new count of them.
	Interruptions int
}

// Decide says what becomes of a job whose attempt ended with the outcome. It
// is pure: jitter, in [0, 1), is drawn by the caller.
func Decide(policy RetryPolicy, at Standing, outcome Outcome, jitter float64) Decision {
	charged := Decision{Kind: outcome.Kind, Attempt: at.Attempt, Interruptions: at.Interruptions}
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
	case GivenBack:
		return uncharged.to(Queued)
	case Snoozed:
		return uncharged.retryIn(wish(outcome.RetryAfter, policy.Delay(1, jitter)))
	case Interrupted:
		if at.Interruptions < MaxInterruptions {
			uncharged.Interruptions++
			return uncharged.to(Queued)
		}
	case Failure, Timeout, Crash, LeaseExpired, Success, CancelConfirmed:
	}
	if at.Attempt >= at.MaxAttempts {
		return charged.to(Dead)
	}
	if outcome.Kind == Timeout && policy.AtOnceAfterTimeout {
		return charged.retryIn(0)
	}
	return charged.retryIn(wish(outcome.RetryAfter, policy.Delay(at.Attempt, jitter)))
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
