package job

import (
	"encoding/json"
	"time"
)

// Lease is the time-limited ownership of one running job. Both sides hold it:
// the database as a row, the owner as this value. Every settle, renewal,
// progress and checkpoint shows JobID and ID together.
type Lease struct {
	JobID ID
	ID    LeaseID
	// Fence grows with every claim of the job and is never issued twice while
	// the database keeps its history. It is handed to the handler, which can
	// show it to whatever it writes to.
	Fence int64
}

// Claimed is a job that the caller has just come to own.
type Claimed struct {
	Lease
	Type    string
	Tenant  string
	Payload json.RawMessage
	// Attempt counts from 1 and includes the one about to start.
	Attempt     int
	MaxAttempts int
	// Interruptions is how often the job lost its attempt through no fault of
	// its own, since it was submitted or requeued.
	Interruptions int
	// Crashes is how many processes have died under the job since an attempt
	// at it came to another end. With any, this one is to run alone.
	Crashes int
	Timeout time.Duration
	// Checkpoint is what the last attempt saved; nil for none.
	Checkpoint json.RawMessage
	Trace      Trace
	CreatedAt  time.Time
	Priority   int16
	// RunAt is when the job was due, ClaimedAt when it was claimed, both by
	// the database's clock.
	RunAt     time.Time
	ClaimedAt time.Time
	// Last is the attempt before; nil when there was none, or when the job has
	// no trace context.
	Last *LastAttempt
}

// LastAttempt is how and when, by the database's clock, the attempt before ended.
type LastAttempt struct {
	EndedAt time.Time
	Outcome OutcomeKind
}

// Renewed is a lease that was proven to be still held.
type Renewed struct {
	ID LeaseID
	// CancelRequested says that the job is to be canceled.
	CancelRequested bool
}

// Worker is one incarnation of an orchestrator that runs jobs.
type Worker struct {
	// ID is the configured name with a random suffix for the incarnation, so
	// that a restart is never taken for its predecessor.
	ID string
	// Host names the running system and the process namespace that PID
	// belongs to; PIDStarted, in clock ticks since boot, distinguishes the process
	// from a later one with the same PID.
	Host       string
	PID        int
	PIDStarted int64
}

// Expired is a job whose lease ran out. The reaper that receives it has taken
// the lease over: the Lease in it is new, and the old holder is fenced off.
type Expired struct {
	Lease
	Type          string
	Attempt       int
	MaxAttempts   int
	Interruptions int
	// Crashes is as in Claimed.
	Crashes int
	// Worker held the expired lease.
	Worker string
	// WorkerGone says that the worker itself has stopped or fallen silent, in the
	// second half of the lease at the latest, so that the job is not to blame.
	WorkerGone bool
	// CancelRequested says that the job is to be canceled, not retried.
	CancelRequested bool
	Tenant          string
	Trace           Trace
	CreatedAt       time.Time
	// RunAt is when the job was due, ClaimedAt when it was claimed, HeartbeatAt
	// when its worker was last heard of (zero if never), ExpiredAt when the lease
	// ran out, and ReapedAt when it was taken over, all by the database's clock.
	RunAt       time.Time
	ClaimedAt   time.Time
	HeartbeatAt time.Time
	ExpiredAt   time.Time
	ReapedAt    time.Time
	// Last is as in Claimed.
	Last *LastAttempt
}

// Assignment is what a handler process is given to start one attempt.
type Assignment struct {
	Claimed
	// LeaseFor is how long the lease is still proven at the moment of
	// sending. A handler process that hears of no extension within it stops
	// the job.
	LeaseFor time.Duration
	// Isolated says that the attempt must run in a process of its own: the last
	// process under the job has died, and the job may be to blame.
	Isolated bool
}

// Pool is a handler plugin with its room: the types its processes serve and
// how many more attempts they can take now. Its JSON is what a worker says of
// itself in the database, and leaves out what changes all the time.
type Pool struct {
	Plugin  string   `json:"plugin"`
	Version string   `json:"version"`
	Types   []string `json:"jobTypes"`
	Free    int      `json:"-"`
	// Slots is how many attempts its processes that are up can have at once,
	// Free and taken together.
	Slots int `json:"-"`
	// Down says that none of its processes is up just now. It can still take
	// attempts with Assignment.Isolated.
	Down bool `json:"-"`
	// Room is how many attempts of a job type it could take now, for the types
	// that have a bound of their own; nil when none has.
	Room map[string]int `json:"-"`
	// FreeIsolated is how many attempts with Assignment.Isolated it could take now.
	FreeIsolated int `json:"-"`
	// RoomIsolated is how many attempts with Assignment.Isolated of a job type it could
	// take now, for the types in Room.
	RoomIsolated map[string]int `json:"-"`
}

// TypeSpec is what a handler declares about one job type, with config laid
// over it and every default resolved.
type TypeSpec struct {
	Type    string
	Plugin  string
	Version string
	// Schema is the JSON Schema of the payload; nil when none was declared.
	Schema      json.RawMessage
	MaxAttempts int
	Timeout     time.Duration
	Retry       RetryPolicy
	// Description says what the type is for, to people; empty for nothing.
	Description string
	// Concurrency is the most attempts of the type that a process of the plugin
	// is given at once; 0 for as many as it takes of all types.
	Concurrency int
}
