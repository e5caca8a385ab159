package job

// Hint names a channel on which processes tell each other that something
// changed. Hints carry nothing, may be lost, and only save a wait: whatever
// they announce is also found by polling.
type Hint string

const (
	// JobsReady says that jobs were put on the ready list.
	JobsReady Hint = "holdfast_ready"
	// CancelAsked says that the cancel of a running job was requested.
	CancelAsked Hint = "holdfast_cancel"
	// JobsAwaited says that clients of some process wait for jobs to end.
	JobsAwaited Hint = "holdfast_awaited"
	// JobsEnded says that jobs have reached a final state. It is only given
	// while jobs are awaited.
	JobsEnded Hint = "holdfast_ended"
	// TypesDeclared says that handlers have declared job types anew.
	TypesDeclared Hint = "holdfast_types"
)

// Hints lists every hint.
func Hints() []Hint { return []Hint{JobsReady, CancelAsked, JobsAwaited, JobsEnded, TypesDeclared} }
