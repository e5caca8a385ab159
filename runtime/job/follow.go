package job

import "time"

// Ended is one end of a followed job: it has become succeeded, dead or canceled.
type Ended struct {
	ID     ID
	Type   string
	Tenant string
	State  State
	// At is when, by the database's clock.
	At time.Time
	// Tags are those of the job.
	Tags []string
	// CalledBack says that the job has a callback URL.
	CalledBack bool
}

// FollowPlan is what a round of the follower needs to know of the moment.
type FollowPlan struct {
	Deliveries DeliveryPlan
	// Events is which ends become events.
	Events EventLog
	// CancelingAfter is CancelingNext of the round before.
	CancelingAfter ID
}

// Following is what a round of the follower has done.
type Following struct {
	// Ended are the ends that it has followed up, in their order.
	Ended []Ended
	// Delivered is what became of the callbacks among them.
	Delivered Delivered
	// Recorded is how many events it has recorded.
	Recorded int
	// More says that there are more.
	More bool
	// Due is how many jobs of workflows it has made due, and Canceled are those that it has
	// canceled, because of others.
	Due      int
	Canceled []ID
	// Workflows are those that have finished.
	Workflows []WorkflowCount
	// Canceling are some workflows that somebody has canceled and that have not finished.
	Canceling []ID
	// CancelingNext is after which of them the next round goes on, so that each has its turn.
	CancelingNext ID
}
