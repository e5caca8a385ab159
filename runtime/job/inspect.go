package job

import (
	"encoding/json"
	"time"
)

// Filter chooses jobs for a list. A zero field is no restriction. Its JSON is kept with operations
// under way: a name there stays what it is, whatever becomes of the field.
type Filter struct {
	// States are the states to include.
	States []State `json:"states,omitzero"`
	Type   string  `json:"type,omitzero"`
	Tenant string  `json:"tenant,omitzero"`
	Tag    string  `json:"tag,omitzero"`
	// WithoutScheduled and WithoutHeld restrict the state created to jobs that are held, and
	// to jobs that are due at some time.
	WithoutScheduled bool `json:"withoutScheduled,omitzero"`
	WithoutHeld      bool `json:"withoutHeld,omitzero"`
	// Worker is the last owner.
	Worker string `json:"worker,omitzero"`
	// Code is the error code of the last attempt, which did not succeed.
	Code string `json:"code,omitzero"`
	// Fingerprint is that of the error under which the job died.
	Fingerprint string `json:"fingerprint,omitzero"`
	// Payload is text that the payload contains, as it was sent.
	Payload string `json:"payload,omitzero"`
	// Parent submitted the jobs.
	Parent ID `json:"parent,omitzero"`
	// CreatedFrom (inclusive) and CreatedBefore (exclusive) bound the time of creation.
	CreatedFrom   time.Time `json:"createdFrom,omitzero"`
	CreatedBefore time.Time `json:"createdBefore,omitzero"`
	// FrozenAt leaves out jobs that were created, or ended, after it.
	FrozenAt time.Time `json:"frozenAt,omitzero"`
	// After is the Next of the previous page; only older jobs follow.
	After ID `json:"after,omitzero"`
	// Limit bounds the jobs of a page; at least 1.
	Limit int `json:"limit,omitzero"`
	// Within bounds how long a page or a count searches: then it ends with what it has found. It
	// is no part of what the filter selects.
	Within time.Duration `json:"-"`
}

// Page is a part of a list of jobs, newest first. It can be short or even empty while more
// pages follow, because the work for one page is bounded, however few jobs match.
type Page struct {
	Jobs []View
	// Next is the After of the next page; zero on the last page.
	Next ID
}

// MaxResubmissions bounds how many resubmissions of a job are shown.
const MaxResubmissions = 10

// Detail is everything that is known about a job, for operators.
type Detail struct {
	View
	Payload        json.RawMessage
	Checkpoint     json.RawMessage
	IdempotencyKey string
	Tags           []string
	Priority       int16
	// Parent is the job that submitted this one; the zero id for none.
	Parent ID
	// Callback is whom to tell when the job ends: a URL, which may contain a secret; empty
	// for nobody.
	Callback string
	// Workflow is the workflow that the job belongs to; the zero id for none.
	Workflow ID
	// ResubmissionOf is the job that this one was submitted anew from; the zero id for none.
	// It may be gone.
	ResubmissionOf ID
	// Resubmissions are the newest MaxResubmissions that were made from this job, newest first.
	Resubmissions []ID
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
	Worker    string
	ClaimedAt time.Time
	// BeganAt is when the handler was started; nil until the database knows.
	BeganAt         *time.Time
	ExpiresAt       time.Time
	CancelRequested bool
}

// DeadLetterFilter chooses dead letters. Empty texts are no restriction.
type DeadLetterFilter struct {
	Type   string
	Tenant string
	// Code is the error's, as the handler gave it.
	Code string
	// Fingerprint is the error's, see Fingerprint.
	Fingerprint string
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

// MaxCount bounds exact counts: reading more would take long, and tell nobody more.
const MaxCount = 10_000

// Count is a number that is exact up to MaxCount.
type Count struct {
	Jobs int
	// More says that there are more than MaxCount, and Jobs is MaxCount.
	More bool
}

// CountOf is the count of what a statement has found that stops after one more than
// MaxCount.
func CountOf(found int) Count { return Count{Jobs: min(found, MaxCount), More: found > MaxCount} }

// DeadLetterGroup is the dead letters of one job type whose errors have the same
// fingerprint.
type DeadLetterGroup struct {
	Type string
	Code string
	// Fingerprint is empty for dead letters whose fingerprint is not filled in yet.
	Fingerprint string
	// Message is the pattern of the error.
	Message string
	Count
	DeadLetterTimes
	// Versions are those of the plugin under which the latest jobs died, in no order.
	Versions []string
	// Samples are jobs that died latest.
	Samples []ID
	// Recent is how many of the latest jobs died in each of the last 24 hours, oldest first;
	// empty if none did.
	Recent []int64
}

// DeadLetterTimes are when the first and the last job of a group died.
type DeadLetterTimes struct {
	FirstDeadAt time.Time
	LastDeadAt  time.Time
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
