package job

import (
	"maps"
	"slices"
	"time"
)

// Retention is how long jobs are kept after their end. A nil time is for ever.
type Retention struct {
	Succeeded, Canceled, Dead *time.Duration
	// Keys is how long the idempotency key of a job is kept at least. While it is kept, a
	// job whose own time is over is only blanked.
	Keys *time.Duration
}

// After is how long a job of the final state is kept; nil for ever.
func (r Retention) After(s State) *time.Duration {
	switch s {
	case Succeeded:
		return r.Succeeded
	case Canceled:
		return r.Canceled
	case Dead:
		return r.Dead
	case Created, Queued, Running, Retry:
	}
	return nil
}

// RetentionPolicies are the retention of each job type. The zero value keeps everything.
type RetentionPolicies struct {
	// Default is for all types that are not in Types.
	Default Retention
	Types   map[string]Retention
	// Audit is how long it is kept what people did; nil for ever. A change of it concerns no
	// walk.
	Audit *time.Duration `json:"-"`
}

// All returns the names of the types, in order, and the retention of each. The first name is
// empty, for all other types.
func (p RetentionPolicies) All() (types []string, retentions []Retention) {
	types = append([]string{""}, slices.Sorted(maps.Keys(p.Types))...)
	retentions = make([]Retention, len(types))
	retentions[0] = p.Default
	for i, name := range types[1:] {
		retentions[i+1] = p.Types[name]
	}
	return types, retentions
}

// Shortest is the shortest time after which a job of any of the states is deleted; false if
// all of them are kept.
func (p RetentionPolicies) Shortest(states ...State) (shortest time.Duration, ok bool) {
	_, retentions := p.All()
	for _, r := range retentions {
		for _, s := range states {
			if keep := r.After(s); keep != nil && (!ok || *keep < shortest) {
				shortest, ok = *keep, true
			}
		}
	}
	return shortest, ok
}

// Walk is one of the ways in which the deleter looks for jobs.
type Walk string

// The walks of the deleter.
const (
	// WalkEnded goes through the ledger, for jobs that have succeeded or were canceled.
	WalkEnded Walk = "ended"
	// WalkDead goes through the dead letters.
	WalkDead Walk = "dead"
)

// States are those of the jobs that the walk is for.
func (w Walk) States() []State {
	if w == WalkDead {
		return []State{Dead}
	}
	return []State{Succeeded, Canceled}
}

// Swept is what one look of the deleter did.
type Swept struct {
	// Mine is false if another process is at it. Then nothing was done.
	Mine bool
	// Reached says that it has looked at all jobs that are old enough.
	Reached bool
	// Walked is how long ago the walk began at the first job.
	Walked time.Duration
	// Behind is how long ago it had looked at all jobs that were old enough.
	Behind time.Duration
	// Deleted and Blanked count jobs by the state in which they were.
	Deleted, Blanked map[State]int64
	// Late is how long ago the time of the jobs was over, at most.
	Late time.Duration
}

// Jobs is how many jobs were deleted or blanked.
func (s Swept) Jobs() (n int64) {
	for _, counts := range []map[State]int64{s.Deleted, s.Blanked} {
		for _, jobs := range counts {
			n += jobs
		}
	}
	return n
}

// Fate says what retention does with jobs.
type Fate string

// The fates of jobs, in the order in which a plan shows them.
const (
	// FateDelete: their time is over, and the deleter deletes them.
	FateDelete Fate = "delete"
	// FateBlank: their time is over, but not that of their key: the deleter blanks them.
	FateBlank Fate = "blank"
	// FateKey: nothing is left of them but a key that is kept.
	FateKey Fate = "key"
	// FateYoung: their time is not over.
	FateYoung Fate = "young"
	// FateKeep: they are kept for ever.
	FateKeep Fate = "keep"
	// FateNeeded: others still need them.
	FateNeeded Fate = "needed"
	// FateOpen: they have not ended.
	FateOpen Fate = "open"
)

// RetentionGroup are the jobs of a type and a state that share a fate.
type RetentionGroup struct {
	Type  string
	State State
	Fate  Fate
	Jobs  int64
	// Bytes are those of the ledger rows, without indexes, attempts and logs.
	Bytes int64
	// Oldest is when the first of them ended; nil for open jobs.
	Oldest *time.Time
}

// RetentionPlan is what the deleter would do now.
type RetentionPlan struct {
	At time.Time
	// Sampled is the share of the ledger that was read, from 0 to 1: below 1, the numbers are
	// estimates.
	Sampled float64
	Groups  []RetentionGroup
}
