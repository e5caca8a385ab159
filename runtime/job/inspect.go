package job

import (
	"encoding/json"
	"time"
)

// Filter chooses jobs for a list. A zero field does not restrict.
type Filter struct {
	// States are those that the jobs may be in.
	States []State
	Type   string
	Tenant string
	Tag    string
	// CreatedFrom and CreatedBefore bound the time of creation: the first is
	// part of the range, the second is not.
	CreatedFrom   time.Time
	CreatedBefore time.Time
	// After is where the page before ended: only older jobs follow.
	After ID
	// Limit is the most jobs of a page; at least 1.
	Limit int
}

// Page is a part of a list of jobs, the newest first. It can be short, or
// empty, while more follow: the work on one page is bounded, however rare the
// jobs are that the filter lets through.
type Page struct {
	Jobs []View
	// Next is the After of the next page; zero when there is none.
	Next ID
}

// Detail is everything that is known of a job, for operators.
type Detail struct {
	View
	Payload        json.RawMessage
	Checkpoint     json.RawMessage
	IdempotencyKey string
	Tags           []string
	Priority       int16
	// RunAt is when the job is or was due; zero for one that is held.
	RunAt time.Time
	// Charged is how many attempts have been charged, the running one
	// included.
	Charged       int
	MaxAttempts   int
	Interruptions int
	// Crashes is how many processes have died under the job since an attempt
	// at it came to another end. With any, its attempts run alone.
	Crashes   int
	Fence     int64
	Timeout   time.Duration
	LastError string
	// Worker is the last owner; empty when there was none.
	Worker string
	// Lease is nil unless the job is running.
	Lease *LeaseView
	// Attempts are those that have ended, oldest first.
	Attempts []Attempt
}

// LogFilter chooses what is shown of a job's log.
type LogFilter struct {
	// Number chooses the attempts of that number: there are several where some
	// were not charged, or the job was requeued. 0 chooses all.
	Number int
	// Limit is the most attempts that are shown, the latest; at least 1.
	Limit int
}

// LeaseView is a lease as operators see it. Its id is left out: whoever knows
// it could settle the job.
type LeaseView struct {
	Worker          string
	ClaimedAt       time.Time
	ExpiresAt       time.Time
	CancelRequested bool
}

// DeadLetterFilter chooses dead letters. Empty names do not restrict.
type DeadLetterFilter struct {
	Type   string
	Tenant string
	// After is where the page before ended; zero for the first page.
	After DeadLetterPosition
	// Limit is the most that are returned; at least 1.
	Limit int
}

// DeadLetterPosition is a position in the list of dead letters.
type DeadLetterPosition struct {
	DeadAt time.Time
	ID     ID
}

// Condition says how a worker is.
type Condition string

// The conditions of a worker.
const (
	// WorkerAlive has sent heartbeats in time.
	WorkerAlive Condition = "alive"
	// WorkerSilent has missed them: it has crashed or is cut off, and its
	// jobs are taken over.
	WorkerSilent Condition = "silent"
	// WorkerStopped has signed off.
	WorkerStopped Condition = "stopped"
)

// WorkerView is one incarnation of an orchestrator as operators see it.
type WorkerView struct {
	ID          string
	Host        string
	PID         int
	Condition   Condition
	StartedAt   time.Time
	HeartbeatAt time.Time
	StoppedAt   *time.Time
	// Plugins is what it serves, as JSON.
	Plugins json.RawMessage
	// Jobs counts the jobs it runs, and those whose last attempt it ended in
	// a final state.
	Jobs map[State]int64
}

// Queue is what waits and runs of one job type.
type Queue struct {
	Type string
	// Queued are claimable now; Oldest is how long the first of them has
	// been.
	Queued int64
	Oldest time.Duration
	// Scheduled and Retrying are due later, Held have no time.
	Scheduled int64
	Held      int64
	Retrying  int64
	Running   int64
	Dead      int64
	// Served says that a live worker has a handler for the type.
	Served bool
}

// Metrics is what the database knows of the whole system at one moment.
type Metrics struct {
	At time.Time
	// Counts is how many jobs there are in each state.
	Counts map[State]int64
	// ByWorker is as WorkerView.Jobs, by worker.
	ByWorker map[string]map[State]int64
	// ByAttempts is how many jobs have been charged so many attempts.
	ByAttempts map[int]int64
	// Window is how far Recent looks back.
	Window time.Duration
	Recent Recent
	// ProcessedLastMinute is how many attempts ended in the last minute,
	// given back and interrupted ones left out.
	ProcessedLastMinute int64
	// FailuresByType is how many attempts have failed, ever.
	FailuresByType map[string]int64
	// AverageByType is the mean duration of the attempts that succeeded, ever.
	AverageByType map[string]time.Duration
	Queues        []Queue
	// OldestSnapshot is how long the oldest transaction, prepared transaction
	// or replication slot has kept vacuum from removing dead rows.
	OldestSnapshot time.Duration
	// SnapshotAge is the same in transactions.
	SnapshotAge int64
}

// Recent counts what has happened in a window of time.
type Recent struct {
	Submitted int64
	Succeeded int64
	Dead      int64
	Canceled  int64
	// Failed is how many attempts have failed, whether retried or not.
	Failed int64
	// Requeued is how many dead jobs were given new attempts.
	Requeued int64
}

// Severity ranks what a check has found.
type Severity string

// The severities, from best to worst.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning"
	Problem Severity = "problem"
)

// Check is one thing that was looked at by a diagnosis.
type Check struct {
	// Name is stable, in snake_case.
	Name     string
	Severity Severity
	// Summary is one sentence; Details are examples, a bounded number.
	Summary string
	Details []string
	// Remedy says what to do; empty when nothing is to be done.
	Remedy string
}
