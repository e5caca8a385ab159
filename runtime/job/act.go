package job

import "time"

// ActDone is the result of an act that was done.
const ActDone = "done"

// Act is what somebody did, or tried to do, and what came of it: a row of the audit log.
type Act struct {
	ID int64
	At time.Time
	// Actor is the user who logged in, or a token by its name; empty if nobody asked who it is.
	Actor string
	// Action is what it was, such as job.cancel.
	Action string
	// Tenant is whom it concerned; empty if that is several or unknown.
	Tenant string
	// JobID is the job that it concerned; nil if it is not about one.
	JobID *ID
	// Filter is JSON that says what else it concerned; nil for nothing else.
	Filter []byte
	// Count is how many there were; nil if nothing was counted.
	Count *int64
	// Reason is what the actor says, and may be empty.
	Reason string
	// Result is ActDone, "refused: " and why, or how it failed. It is empty for what erases
	// jobs.
	Result string
}

// ActFilter selects acts. Its zero value selects all.
type ActFilter struct {
	// Empty strings, a nil job and zero times are no conditions.
	Actor, Action, Tenant string
	Job                   *ID
	From, Before          time.Time
	// After is where an earlier page ended; zero for the first page.
	After ActPosition
	Limit int
}

// ActPosition is that of an act in a list.
type ActPosition struct {
	At time.Time
	ID int64
}
