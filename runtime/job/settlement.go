package job

import (
	"encoding/json"
	"time"
)

// Settlement ends one attempt: what was decided, and what is recorded of it.
type Settlement struct {
	Lease
	Decision
	// Started says that the handler was started, or may have been: its worker is lost.
	Started bool
	// Done is when the handler was done, or its process gone. Until the attempt ends, its lease
	// is only held. Of an attempt whose worker is lost, it is the worker's last sign of life. It is not kept of a success.
	Done SinceClaim
	// Number is the attempt that ended, counted from 1.
	Number int
	// Result is JSON, for Succeeded only.
	Result json.RawMessage
	// FollowUps are the jobs that become real together with the success, and only then. Their
	// ids stay the same however often the settlement is sent.
	FollowUps []Submission
	// Code, Error and Stack describe what went wrong; empty for nothing.
	Code  string
	Error string
	Stack string
	// Plugin and Version ran the attempt; empty if a reaper settles it.
	Plugin  string
	Version string
	SpanID  string
}

// SettleResult says what became of a settlement.
type SettleResult string

const (
	// Settled: written, now or by an earlier try whose answer was lost.
	Settled SettleResult = "settled"
	// Canceling: not written, because a cancel was requested meanwhile. The
	// lease is still held; settle as Canceled.
	Canceling SettleResult = "cancel_requested"
	// Held: not written and the lease is still held; settle again.
	Held SettleResult = "held"
	// Lost: not written; somebody else owns or has settled the job.
	Lost SettleResult = "lost"
	// Refused: not written, because a value in it cannot be stored. The lease
	// is still held; settle without the value.
	Refused SettleResult = "refused"
)

// Parking takes a claimed job back that may not start: it must pass gates that it did not
// have to pass before. It is not charged an attempt.
type Parking struct {
	Lease
	// Gates are what the job must pass from now on, in the order of Rules.Gates. Without
	// any, it is ready again.
	Gates []Gate
}

// Promoted is how many jobs have become due: those that any worker may claim now, and those
// that wait at their gates.
type Promoted struct {
	Ready  int
	Parked int
}

// Report is what a running attempt has reported since it was last saved; nil fields
// are unchanged.
type Report struct {
	Lease
	Progress   json.RawMessage
	Checkpoint json.RawMessage
	// Log replaces the attempt's log as kept so far.
	Log *AttemptLog
}

// Unserved is a job type with jobs that have waited long without being claimed.
type Unserved struct {
	Type string
	// Jobs is counted up to 1,000.
	Jobs int
	// Oldest is how long the oldest has been due.
	Oldest time.Duration
}
