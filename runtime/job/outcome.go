package job

import (
	"encoding/json"
	"time"
)

// OutcomeKind says how an attempt ended. It is stored with the attempt.
type OutcomeKind string

const (
	// Success: the handler returned without an error.
	Success OutcomeKind = "succeeded"
	// Failure: the handler returned an error that another attempt may cure.
	Failure OutcomeKind = "failed"
	// PermanentFailure: the handler said that no attempt can succeed, or its
	// result cannot be stored.
	PermanentFailure OutcomeKind = "permanent"
	// Timeout: the attempt ran longer than the job's timeout.
	Timeout OutcomeKind = "timeout"
	// Crash: the handler's process died under the attempt.
	Crash OutcomeKind = "crashed"
	// Suspect: the handler's process died with other attempts in it, and any of them may
	// be to blame. Decide turns a Crash into it.
	Suspect OutcomeKind = "suspected"
	// LeaseExpired: the owner is alive but stopped proving its lease.
	LeaseExpired OutcomeKind = "lease_expired"
	// Interrupted: the owner died or was lost; the job is not to blame.
	Interrupted OutcomeKind = "interrupted"
	// Released: the attempt was returned before it finished, through no fault of the job,
	// such as when the worker shut down.
	Released OutcomeKind = "given_back"
	// Snoozed: the handler asked to be called again later.
	Snoozed OutcomeKind = "snoozed"
	// CancelConfirmed: the attempt stopped because the job was canceled.
	CancelConfirmed OutcomeKind = "canceled"
)

// OutcomeKinds lists every kind.
func OutcomeKinds() []OutcomeKind {
	return []OutcomeKind{
		Success, Failure, PermanentFailure, Timeout, Crash, Suspect,
		LeaseExpired, Interrupted, Released, Snoozed, CancelConfirmed,
	}
}

// CodeTimeout is the code of an attempt that ran longer than the job's timeout,
// whether its handler stopped or was killed.
const CodeTimeout = "timeout"

// CodeNoProcess is the code of an isolated attempt that was released, or ran out of time,
// before its process was up.
const CodeNoProcess = "no_process"

// CodeFollowUpsRefused is the code of an attempt that has succeeded, except that a job
// which it submitted was refused.
const CodeFollowUpsRefused = "followups_refused"

// Outcome is how an attempt ended, as the handler, its supervisor or the reaper reports
// it. Decide says what it means for the job.
type Outcome struct {
	Kind OutcomeKind
	// Result is JSON, for Success; nil for none.
	Result json.RawMessage
	// FollowUps are the jobs that the handler has submitted, for Success: each is JSON, a
	// submission as POST /jobs takes it, and not checked yet.
	FollowUps []json.RawMessage
	// Code, Message and Stack describe an error, in the handler's own words.
	Code    string
	Message string
	Stack   string
	// RetryAfter, when set, is the delay that the handler asks for: for Failure instead of the policy's backoff, for Snoozed how
	// long to sleep. For Released it is the owner's: the job is not to be
	// claimed again at once.
	RetryAfter *time.Duration
	// CoResidents, for Crash, is how many other attempts were in the process that died. If
	// there were none, only this one can be to blame.
	CoResidents int
	// Killed, for Crash and Timeout, says that the process was killed because of this
	// attempt (Run.Kill), and did not die by itself.
	Killed bool
}
