package job

import "time"

// Edit is what to change about a job that waits. The zero value changes nothing.
type Edit struct {
	// Priority is the new priority; nil for the same.
	Priority *int16
	// RunAt is the new due time; zero for the same. One that is not in the future makes the
	// job due, and counts in the order of the queue.
	RunAt time.Time
	// Delay is the new due time, counted from now; nil for the same. It excludes RunAt.
	Delay *time.Duration
	// Tags replace the job's; nil for the same, empty for none.
	Tags []string
}

// Edited is a job that was changed.
type Edited struct {
	ID     ID
	Type   string
	Tenant string
	// State is that after the edit.
	State State
	// Trace is the context that the job carries.
	Trace Trace
	// Gated says that the job has gates, so that the admitter has to look.
	Gated bool
}

// EditPage is what an edit changed of one page of a list of jobs.
type EditPage struct {
	Edited []Edited
	// Next is the After of the next page; zero on the last page.
	Next ID
}
