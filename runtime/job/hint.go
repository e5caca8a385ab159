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
)

// Hints lists every hint.
func Hints() []Hint { return []Hint{JobsReady, CancelAsked} }
