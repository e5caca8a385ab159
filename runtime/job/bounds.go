package job

import "time"

// The bounds of what submissions ask for, and of what handlers declare about it. The
// struct tags of v1.Submission describe them.
const (
	MaxKeyChars         = 200 // of a concurrency key or a fairness key
	MaxConcurrencyLimit = 100_000
	MaxUniqueMembers    = 10
	// What a handler declares: the class of a concurrency key, and a pointer to a key.
	MaxClassChars   = 100
	MaxPointerBytes = 1000
	// MinPeriod and MaxPeriod bound how long a job waits, or keeps others out.
	MinPeriod = time.Millisecond
	MaxPeriod = 10 * 365 * 24 * time.Hour
)
