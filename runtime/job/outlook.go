package job

import "time"

// Outlook is what there is for the loops that maintain to do.
type Outlook struct {
	// Following says that ends wait to be followed up, or that a workflow is being canceled.
	Following bool
	// Admitting says that something has happened at a gate, or that one is due.
	Admitting bool
	// Due, Expiry, Tick and Operation are how long it is until a scheduled job is due, a job
	// expires, somebody must look at a schedule, and an operation goes on; not positive if it is
	// overdue, nil if it is not before the next look.
	Due, Expiry, Tick, Operation *time.Duration
}
