package runtime

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// meanOver is over about how many attempts the mean is taken.
	meanOver = 16
	// waitAtMost is how long an attempt waits for a slot before others get the
	// job: the jobs before it take longer than their predecessors did.
	waitAtMost = time.Second
	// aloneAtMost is how many attempts wait to run alone. They are not given
	// back after a second: they would be claimed again at once, and each claim
	// leaves a row. Their leases are renewed meanwhile.
	aloneAtMost = 100
)

// lane is the lineup of one plugin. The lineup's mutex guards it.
type lane struct {
	plugin   string
	identity string
	// shared are attempts that run beside others in a process, alone those
	// that must have one to themselves.
	shared, alone line
	// mean is how long the shared ones have taken of late; 0 while none has
	// ended.
	mean time.Duration
}

// line is where attempts wait for slots of one kind.
type line struct {
	queue []standby
	// atMost bounds the queue; 0 for a queue without a bound.
	atMost int
	// running counts the attempts that were started and have not ended; free
	// is how many slots there were when the pool was last looked at.
	running, free int
	// moved is when one was last started or ended.
	moved time.Time
}

// standby is an attempt that waits, and since when.
type standby struct {
	*attempt
	joined time.Time
}

func newLane(pool job.Pool) *lane {
	return &lane{plugin: pool.Plugin, identity: identity(pool), alone: line{atMost: aloneAtMost}}
}

func (in *lane) lineOf(a *attempt) *line {
	if a.alone() {
		return &in.alone
	}
	return &in.shared
}

// ended counts an attempt that was started and is done.
func (in *lane) ended(a *attempt, took time.Duration) {
	of := in.lineOf(a)
	of.running--
	of.moved = time.Now()
	if of == &in.alone {
		return // its time may include the launch of a process
	}
	if in.mean == 0 {
		in.mean = took
	}
	in.mean += (took - in.mean) / meanOver
}

// ahead is how many attempts the slots of the lane can take within the time to
// claim ahead for.
func (in *lane) ahead(cfg Config) int {
	if in.mean <= 0 || in.mean > cfg.ClaimAhead {
		return 0
	}
	slots := min(in.shared.running+in.shared.free, cfg.Concurrency)
	return int(min(int64(slots)*int64(cfg.ClaimAhead/in.mean), 2*claimBatch))
}

// empty returns all that waits, and forgets it.
func (in *lane) empty() []standby {
	left := append(in.shared.queue, in.alone.queue...)
	in.shared.queue, in.alone.queue = nil, nil
	return left
}

// join adds to the queue; not when it is full.
func (of *line) join(w standby) bool {
	if of.atMost > 0 && len(of.queue) >= of.atMost {
		return false
	}
	of.queue = append(of.queue, w)
	return true
}

// since returns those that have waited since then or longer, and forgets them.
func (of *line) since(then time.Time) []standby {
	stale := 0
	for stale < len(of.queue) && !of.queue[stale].joined.After(then) {
		stale++
	}
	left := of.queue[:stale]
	of.queue = of.queue[stale:]
	return left
}
