package runtime

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// meanOver is over about how many attempts the mean is taken.
	meanOver = 16
	// waitAtMost is how long an attempt waits for a slot before others get the
	// job: the jobs before it take longer than their predecessors did.
	waitAtMost = time.Second
	// aloneAtMost is how many attempts wait to run alone: what a claim can bring.
	// They are not given back after a second: they would be claimed again at
	// once, and each claim leaves a row. Their leases are renewed meanwhile.
	aloneAtMost = claimBatch
	// calmFor is how long nothing is claimed ahead after a process of the plugin
	// has died, or after what was claimed ahead had to be given back: the slots
	// may not be there, or not as soon as attempts have ended of late.
	calmFor = 10 * time.Second
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
	// slots is how many shared ones the processes that are up can have at once.
	slots int
	// calm is when attempts may be claimed ahead again.
	calm time.Time
}

// line is where attempts wait for slots of one kind.
type line struct {
	queue []standby
	// atMost bounds the queue; 0 for a queue without a bound.
	atMost int
	// free is how many slots there were when the pool was last looked at; room,
	// of them, how many for the job types that it bounds.
	free int
	room map[string]int
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

// look takes in what the pool has room for now.
func (in *lane) look(pool job.Pool) {
	in.slots = pool.Slots
	in.shared.free = pool.Free
	in.alone.free, in.alone.room = pool.FreeIsolated, pool.RoomIsolated
}

func (in *lane) lineOf(a *attempt) *line {
	if a.alone() {
		return &in.alone
	}
	return &in.shared
}

// ended counts an attempt that was started and is done. Of one whose process has
// died or was killed it is not known how long it would have taken.
func (in *lane) ended(a *attempt, as job.OutcomeKind, took time.Duration) {
	of := in.lineOf(a)
	of.moved = time.Now()
	if of == &in.alone {
		return // its time may include the launch of a process
	}
	if as == job.Crash || as == job.Released {
		in.calm = of.moved.Add(calmFor)
		return
	}
	if in.mean == 0 {
		in.mean = took
	}
	in.mean += (took - in.mean) / meanOver
}

// ahead is how many attempts the slots of the lane can take within the time to
// claim ahead for.
func (in *lane) ahead(cfg Config, now time.Time) int {
	if in.mean <= 0 || in.mean > cfg.Prefetch || now.Before(in.calm) {
		return 0
	}
	slots := min(in.slots, cfg.Concurrency)
	return int(min(int64(slots)*int64(cfg.Prefetch/in.mean), 2*claimBatch))
}

// empty returns all that waits, and forgets it.
func (in *lane) empty() []standby {
	left := append(in.shared.queue, in.alone.queue...)
	in.shared.queue, in.alone.queue = nil, nil
	return left
}

// take returns the first that there is room for, and forgets it.
func (of *line) take() (standby, bool) {
	for i, w := range of.queue {
		room, bounded := of.room[w.claimed.Type]
		switch {
		case !bounded:
		case room < 1:
			continue
		default:
			of.room[w.claimed.Type]--
		}
		if i == 0 { // nearly always, and nothing has to move
			of.queue[0] = standby{}
			of.queue = of.queue[1:]
		} else {
			of.queue = slices.Delete(of.queue, i, i+1)
		}
		return w, true
	}
	return standby{}, false
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
