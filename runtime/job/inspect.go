package job

import (
	"encoding/json"
	"time"
)

// Filter chooses jobs for a list. A zero field is no restriction.
type Filter struct {
	// States are the states to include.
	States []State
	Type   string
	Tenant string
	Tag    string
	// CreatedFrom (inclusive) and CreatedBefore (exclusive) bound the time of creation.
	CreatedFrom   time.Time
	CreatedBefore time.Time
	// After is the Next of the previous page; only older jobs follow.
	After ID
	// Limit bounds the jobs of a page; at least 1.
	Limit int
}

// Page is a part of a list of jobs, newest first. It can be short or even empty while more
// pages follow, because the work for one page is bounded, however few jobs match.
type Page struct {
	Jobs []View
	// Next is the After of the next page; zero on the last page.
	Next ID
}

// Detail is everything that is known about a job, for operators.
type Detail struct {
	View
	Payload        json.RawMessage
	Checkpoint     json.RawMessage
	IdempotencyKey string
	Tags           []string
	Priority       int16
	// Terms are the submission's, or its job type's.
	Terms Terms
	// RunAt is when the job is or was due; zero for a held job.
	RunAt time.Time
	// ExpiresAt is when the job is, or was, canceled unless it has started; zero for never,
	// also once an attempt of it has ended and another follows.
	ExpiresAt time.Time
	// Charged counts the charged attempts, including the running one.
	Charged       int
	MaxAttempts   int
	Interruptions int
	// Crashes is how many plugin processes have died under the job since an attempt at it
	// last ended in another way. If it is above 0, the job runs isolated.
	Crashes   int
	Fence     int64
	Timeout   time.Duration
	LastError string
	// Waits are what the job waits for, the most lasting first; nil if it does not wait.
	Waits []Wait
	// Worker is the last owner; empty for none.
	Worker string
	// Lease is nil unless the job is running.
	Lease *LeaseView
	// Attempts are the ended attempts, oldest first.
	Attempts []Attempt
}

// LogFilter chooses a part of a job's log.
type LogFilter struct {
	// Number chooses the attempts with that number: several if some were not charged or
	// the job was requeued. 0 chooses all.
	Number int
	// Limit is how many attempts to show at most, the latest ones; at least 1.
	Limit int
}

// LeaseView is a lease as operators see it, without its id: whoever knows the id could
// settle the job.
type LeaseView struct {
	Worker          string
	ClaimedAt       time.Time
	ExpiresAt       time.Time
	CancelRequested bool
}

// DeadLetterFilter chooses dead letters. Empty names are no restriction.
type DeadLetterFilter struct {
	Type   string
	Tenant string
	// After is the last position of the previous page; zero for the first page.
	After DeadLetterPosition
	// Limit bounds how many are returned; at least 1.
	Limit int
}

// DeadLetterPosition is a position in the list of dead letters.
type DeadLetterPosition struct {
	DeadAt time.Time
	ID     ID
}

// Condition says whether a worker is alive.
type Condition string

// The conditions of a worker.
const (
	// WorkerAlive: its heartbeats arrive in time.
	WorkerAlive Condition = "alive"
	// WorkerDraining: it was asked to take no more jobs, and still has some.
	WorkerDraining Condition = "draining"
	// WorkerDrained: it takes no jobs until it is resumed, and has none.
	WorkerDrained Condition = "drained"
	// WorkerSilent: its heartbeats are overdue. It has crashed or is cut off, and its jobs
	// are taken over.
	WorkerSilent Condition = "silent"
	// WorkerStopped: it has signed off.
	WorkerStopped Condition = "stopped"
)

// Severity ranks the result of a check.
type Severity string

// The severities, from best to worst.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning"
	Problem Severity = "problem"
)

// Check is the result of one check of a diagnosis.
type Check struct {
	// Name is stable, in snake_case.
	Name     string
	Severity Severity
	// Summary is one sentence; Details are a bounded number of examples.
	Summary string
	Details []string
	// Remedy says what to do; empty for nothing.
	Remedy string
}
