package job

import (
	"encoding/json"
	"time"
)

// Lease is the time-limited ownership of one running job: a row in the database, and this
// value at the owner. Every settlement, renewal and report is sent with JobID and ID.
type Lease struct {
	JobID ID
	ID    LeaseID
	// Fence grows with every lease of the job and is never issued twice while the database
	// keeps the job. The handler gets it, and can pass it on to systems that it writes to.
	Fence int64
	// Gated says that the job has gates. When the lease ends, the job's slots are free.
	Gated bool
	// Followed says that somebody must be told when the job ends; see Submission.
	Followed bool
	// Began is when the handler was started, as far as the owner knows. The database learns
	// it when the lease is renewed or ends.
	Began SinceClaim
}

// SinceClaim is a moment of an attempt, by how much time had passed since its claim. So the
// database can add it to the time of the claim, and no other clock matters.
type SinceClaim struct {
	Time time.Duration
	// Known is false if the moment has not come, or nobody knows when it was.
	Known bool
}

// Claimed is a job that the caller has just claimed.
type Claimed struct {
	Lease
	Type    string
	Tenant  string
	Payload json.RawMessage
	// Attempt counts from 1 and includes the one about to start.
	Attempt     int
	MaxAttempts int
	// Interruptions is how often an owner vanished under the job since it was submitted or
	// requeued.
	Interruptions int
	// Crashes is how many plugin processes have died under the job since an attempt at it
	// last ended in another way. If it is above 0, this attempt must run isolated.
	Crashes int
	Timeout time.Duration
	// Checkpoint is the last one that an attempt saved; nil for none.
	Checkpoint json.RawMessage
	Trace      Trace
	CreatedAt  time.Time
	Priority   int16
	// RunAt is when the job was due, ClaimedAt when it was claimed, both by
	// the database's clock.
	RunAt     time.Time
	ClaimedAt time.Time
	// ExpiresAt is when the job is canceled unless it has started; the zero time for never,
	// also if it has started before.
	ExpiresAt time.Time
	// Passed is how the job passed its gates; nil for a job without gates.
	Passed *Passed
	// Last is the previous attempt; nil if there was none, the job is not traced, or its last
	// claim was parked.
	Last *LastAttempt
	// Predecessors are the jobs that it came after in its workflow, in the order of `after`;
	// nil for none.
	Predecessors []Predecessor
}

// Passed is how a job passed its gates.
type Passed struct {
	Gates []Gate
	// AdmittedAt is when it had passed all of them, by the database's clock.
	AdmittedAt time.Time
	// Position is the job's place among the ready jobs of its type and priority: its RunAt,
	// or the virtual time of its turn.
	Position time.Time
}

// Gates are those that the job has passed; nil for none.
func (c *Claimed) Gates() []Gate {
	if c.Passed == nil {
		return nil
	}
	return c.Passed.Gates
}

// Position is the job's place among the ready jobs of its type and priority.
func (c *Claimed) Position() time.Time {
	if c.Passed == nil {
		return c.RunAt
	}
	return c.Passed.Position
}

// Lapsed reports whether the job was claimed too late to be started.
func (c *Claimed) Lapsed() bool { return !c.ExpiresAt.IsZero() && !c.ClaimedAt.Before(c.ExpiresAt) }

// LastAttempt says how and when, by the database's clock, the previous attempt ended.
type LastAttempt struct {
	EndedAt time.Time
	Outcome OutcomeKind
}

// Renewed is a lease that the heartbeat has extended.
type Renewed struct {
	ID LeaseID
	// CancelRequested says that the job is to be canceled.
	CancelRequested bool
	// Kept says that from now on the lease lasts as long as its worker is heard, and is renewed without
	// being named.
	Kept bool
}

// Worker identifies one start of an orchestrator that runs jobs.
type Worker struct {
	// ID is the configured name with a random suffix, so that a restarted worker is never
	// mistaken for its predecessor.
	ID string
	// Host names the running system and the process namespace that PID
	// belongs to; PIDStarted, in clock ticks since boot, distinguishes the process
	// from a later one with the same PID.
	Host       string
	PID        int
	PIDStarted int64
	// Roles are what the process does.
	Roles Roles
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
	// WorkerGone says that the worker itself stopped or fell silent, no later than in the
	// second half of the lease, so that the job is not to blame.
	WorkerGone bool
	// CancelRequested says that the job is to be canceled, not retried.
	CancelRequested bool
	Tenant          string
	Trace           Trace
	CreatedAt       time.Time
	// RunAt is when the job was due, ClaimedAt when it was claimed, HeartbeatAt
	// when its worker last sent a heartbeat (zero if never), ExpiredAt when the lease
	// ran out, and ReapedAt when it was taken over, all by the database's clock.
	RunAt       time.Time
	ClaimedAt   time.Time
	HeartbeatAt time.Time
	ExpiredAt   time.Time
	ReapedAt    time.Time
	// Last is as in Claimed.
	Last *LastAttempt
}

// Assignment is what a plugin process gets to start one attempt.
type Assignment struct {
	Claimed
	// LeaseFor is for how long the lease is proven when the assignment is sent. A plugin
	// process that gets no extension within that time stops the attempt.
	LeaseFor time.Duration
	// Isolated says that the attempt must run in a process of its own: the last
	// process under the job has died, and the job may be to blame.
	Isolated bool
}

// Pool is a plugin's capacity: the types that its processes serve, and how many more
// attempts they can take now. A worker writes its pools to the database as JSON, without
// the fields that change all the time.
type Pool struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	// Types must not be changed: all pools of a plugin share them.
	Types []string `json:"jobTypes"`
	Free  int      `json:"-"`
	// Slots counts the slots of the processes that are up, free or not.
	Slots int `json:"-"`
	// Down says that none of its processes is up. It can still take isolated attempts.
	Down bool `json:"-"`
	// Room is how many more attempts of a job type it can take now, for types with a bound
	// of their own; nil if no type has one.
	Room map[string]int `json:"-"`
	// FreeIsolated is how many more isolated attempts it can take now.
	FreeIsolated int `json:"-"`
	// RoomIsolated is how many more isolated attempts of a job type it can take now, for
	// the types in Room.
	RoomIsolated map[string]int `json:"-"`
}

// TypeSpec is what a handler declares about one job type, with the configuration applied
// and every default filled in.
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
	// Terms say how jobs of the type share with others; nil when none were declared.
	Terms *TypeTerms
}
