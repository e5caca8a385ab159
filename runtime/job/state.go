package job

import "slices"

// State is the state of a job. A job is in exactly one: Running while it has a lease,
// otherwise the one in its ledger row. The database refuses every change that CanBecome
// refuses.
type State string

const (
	// Created is durable but not yet eligible: scheduled for later, or held.
	// Set by the API at submit; the scheduler or a release moves it on.
	Created State = "created"
	// Queued is eligible and unowned. A claim moves it on. A client can postpone it, back to
	// Created, or to Retry after a failed attempt.
	Queued State = "queued"
	// Running is owned under a lease. Only the lease's holder, or the reaper
	// once the lease has expired, moves it on.
	Running State = "running"
	// Retry has failed and waits for its next attempt. The scheduler moves it to Queued
	// when it is due.
	Retry State = "retry"
	// Succeeded is final.
	Succeeded State = "succeeded"
	// Dead is dead-lettered: failed for good or out of attempts. Final, except for a
	// requeue.
	Dead State = "dead"
	// Canceled is final.
	Canceled State = "canceled"
)

// States lists every state in the order a job may pass through them.
func States() []State {
	return []State{Created, Queued, Running, Retry, Succeeded, Dead, Canceled}
}

// successors is the transition table. The WHEN clause of the trigger
// jobs_legal_transition (migrations) repeats it; a test compares the two.
var successors = map[State][]State{
	Created: {Queued, Canceled},
	Queued:  {Created, Running, Retry, Canceled},
	Running: {Succeeded, Retry, Dead, Queued, Canceled},
	Retry:   {Queued, Dead, Canceled},
	Dead:    {Queued},
}

// CanBecome reports whether a job may pass from s to next in one transition.
func (s State) CanBecome(next State) bool { return slices.Contains(successors[s], next) }

// Final reports whether no worker will ever move the job again. A dead job is
// final too: only an operator's requeue leads out of it.
func (s State) Final() bool { return s == Succeeded || s == Dead || s == Canceled }

// Status is the coarse public name of a state, the one API clients see.
type Status string

// The public statuses. Clients can rely on these five; states may be refined.
const (
	StatusPending   Status = "PENDING"
	StatusRunning   Status = "RUNNING"
	StatusCompleted Status = "COMPLETED"
	StatusFailed    Status = "FAILED"
	StatusCanceled  Status = "CANCELED"
)

// Status translates s for the public API.
func (s State) Status() Status {
	switch s {
	case Created, Queued, Retry:
		return StatusPending
	case Running:
		return StatusRunning
	case Succeeded:
		return StatusCompleted
	case Dead:
		return StatusFailed
	case Canceled:
		return StatusCanceled
	default:
		return StatusPending
	}
}
