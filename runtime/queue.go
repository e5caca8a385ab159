package runtime

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// meanOver is over about how many attempts the mean duration is taken.
	meanOver = 16
	// maxWait is how long an attempt waits for a slot before others get the job: the
	// jobs before it take longer than their predecessors did.
	maxWait = time.Second
	// maxIsolated is how many isolated attempts wait: what a claim can bring. They are
	// not released after maxWait: they would be claimed again at once, and each claim
	// leaves a row. Their leases are renewed meanwhile.
	maxIsolated = claimBatch
	// maxPrefetched bounds how many attempts wait, however short they are.
	maxPrefetched = 1000
	// noPrefetchFor is how long nothing is prefetched after a process of the plugin
	// has died, or after what was prefetched had to be released: the slots may not be
	// there, or not as soon as the mean duration says.
	noPrefetchFor = 10 * time.Second
)

// pluginQueue holds the attempts that wait for one plugin. The dispatcher's mutex
// guards it.
type pluginQueue struct {
	plugin   string
	identity string
	// shared are attempts that run beside others in a process, isolated those that
	// must have one to themselves.
	shared, isolated queue
	// starting is a shared attempt that has left its queue and has no slot yet.
	starting *attempt
	// mean is how long the latest shared attempts took; 0 while none has ended.
	mean time.Duration
	// slots is how many shared attempts the processes that are up can have at once.
	slots int
	// prefetchAfter is when jobs may be prefetched again.
	prefetchAfter time.Time
}

// queue holds attempts that wait for slots of one kind, in the order they came.
type queue struct {
	attempts []*attempt
	// max bounds the queue; 0 for a queue without a bound.
	max int
	// free is how many slots there were when the pool was last looked at; room is how
	// many of them the job types in it may have, for those with a bound of their own.
	free int
	room map[string]int
	// moved is when one was last started or ended.
	moved time.Time
}

func newPluginQueue(pool job.Pool) *pluginQueue {
	return &pluginQueue{plugin: pool.Plugin, identity: identity(pool), isolated: queue{max: maxIsolated}}
}

// look notes what the pool has room for now.
func (q *pluginQueue) look(pool job.Pool) {
	q.slots = pool.Slots
	q.shared.free = pool.Free
	q.isolated.free, q.isolated.room = pool.FreeIsolated, pool.RoomIsolated
}

func (q *pluginQueue) queueOf(a *attempt) *queue {
	if a.isolated() {
		return &q.isolated
	}
	return &q.shared
}

// waitingShared counts the shared attempts that wait, the starting one included.
func (q *pluginQueue) waitingShared() int {
	if q.starting != nil {
		return len(q.shared.attempts) + 1
	}
	return len(q.shared.attempts)
}

// ended counts an attempt that was started and is done. The duration of one whose
// process has died or was killed says nothing.
func (q *pluginQueue) ended(a *attempt, as job.OutcomeKind, took time.Duration) {
	of := q.queueOf(a)
	of.moved = time.Now()
	if of == &q.isolated {
		return // its time may include the launch of a process
	}
	if as == job.Crash || as == job.Released {
		q.prefetchAfter = of.moved.Add(noPrefetchFor)
		return
	}
	if q.mean == 0 {
		q.mean = took
	}
	q.mean += (took - q.mean) / meanOver
}

// prefetch is how many attempts the plugin's slots can take within the time to
// prefetch for.
func (q *pluginQueue) prefetch(cfg Config, now time.Time) int {
	if q.mean <= 0 || q.mean > cfg.Prefetch || now.Before(q.prefetchAfter) {
		return 0
	}
	slots := min(q.slots, cfg.Concurrency)
	return int(min(int64(slots)*int64(cfg.Prefetch/q.mean), maxPrefetched))
}

// empty removes and returns everything that waits.
func (q *pluginQueue) empty() []*attempt {
	left := append(q.shared.attempts, q.isolated.attempts...)
	q.shared.attempts, q.isolated.attempts = nil, nil
	return left
}

// take removes and returns the first attempt that there is room for.
func (q *queue) take() (*attempt, bool) {
	for i, a := range q.attempts {
		room, bounded := q.room[a.claimed.Type]
		switch {
		case !bounded:
		case room < 1:
			continue
		default:
			q.room[a.claimed.Type]--
		}
		if i == 0 { // nearly always, and nothing has to move
			q.attempts[0] = nil
			q.attempts = q.attempts[1:]
		} else {
			q.attempts = slices.Delete(q.attempts, i, i+1)
		}
		return a, true
	}
	return nil, false
}

// add returns false when the queue is full.
func (q *queue) add(a *attempt) bool {
	if q.max > 0 && len(q.attempts) >= q.max {
		return false
	}
	q.attempts = append(q.attempts, a)
	return true
}

// takeSince removes and returns those that have waited since then or longer.
func (q *queue) takeSince(then time.Time) []*attempt {
	stale := 0
	for stale < len(q.attempts) && !q.attempts[stale].queued.After(then) {
		stale++
	}
	left := q.attempts[:stale]
	q.attempts = q.attempts[stale:]
	return left
}
