package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// lineup holds the attempts that are claimed and wait for a slot of their
// plugin. Jobs that are done in no time would otherwise wait for a claim each
// time a few slots are free, and a claim of ten costs as much as one of a
// hundred. How many are claimed ahead follows from how long attempts have
// taken of late: about as many as there will be slots for within
// Config.Prefetch. Jobs that take longer than that are not claimed ahead, and
// none are soon after a process of the plugin has died.
//
// Attempts that must run alone wait in a line of their own, so that nobody
// waits behind them. A claim cannot tell beforehand which those are: they come
// on top of what was wanted.
type lineup struct {
	cfg      Config
	handlers Plugins
	held     *holdings

	mu      sync.Mutex
	lanes   map[string]*lane
	order   []*lane // all of them
	turn    int     // whose lane comes first next time
	waiting int     // attempts in all lanes
	closed  bool

	// asked counts who wants attempts to be started. Whoever is the first does
	// it for all of them.
	asked atomic.Int64
}

func newLineup(cfg Config, handlers Plugins, held *holdings) *lineup {
	return &lineup{cfg: cfg, handlers: handlers, held: held, lanes: make(map[string]*lane)}
}

// join lets claimed attempts wait for a slot of the pool, and starts as many as
// there are slots for.
func (l *lineup) join(pool job.Pool, attempts []*attempt) {
	now := time.Now()
	var replaced, surplus []standby
	l.mu.Lock()
	in := l.laneOf(pool)
	if in.identity != identity(pool) {
		replaced = in.empty()
		in.identity, in.mean = identity(pool), 0
	}
	for _, a := range attempts {
		if !in.lineOf(a).join(standby{a, now}) {
			surplus = append(surplus, standby{a, now})
		}
	}
	l.waiting += len(attempts) - len(replaced) - len(surplus)
	l.mu.Unlock()
	giveBack(replaced)
	l.putOff(surplus)
	l.advance()
}

// laneOf is called with the mutex held.
func (l *lineup) laneOf(pool job.Pool) *lane {
	found := l.lanes[pool.Plugin]
	if found == nil {
		found = newLane(pool)
		l.lanes[pool.Plugin] = found
		l.order = append(l.order, found)
	}
	found.look(pool)
	return found
}

// ended counts an attempt whose slot is free again, and starts the next.
func (l *lineup) ended(a *attempt, as job.OutcomeKind, took time.Duration) {
	l.mu.Lock()
	if in := l.lanes[a.pool.Plugin]; in != nil {
		in.ended(a, as, took)
	}
	l.mu.Unlock()
	l.advance()
}

// wanted returns how many jobs are to be claimed for the pool now: for its free
// slots, and ahead.
func (l *lineup) wanted(pool job.Pool, running int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.laneOf(pool)
	ahead, waiting := in.ahead(l.cfg, time.Now()), len(in.shared.queue)
	if waiting > 0 && (waiting >= ahead/2 || in.identity != identity(pool)) {
		return 0 // there is enough to go on with
	}
	room := l.cfg.Concurrency - running
	for _, other := range l.lanes {
		if other != in {
			room -= min(len(other.shared.queue), other.shared.free)
		}
	}
	return max(min(pool.Free, max(room, 0))+ahead-waiting, 0)
}

// putBack makes an attempt the first of its line again; not any more when the
// lineup is closed.
func (l *lineup) putBack(in *line, w standby) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	in.queue = append([]standby{w}, in.queue...)
	l.waiting++
	return true
}

// disperse gives jobs back whose plugin is gone or serves something else by
// now, and those that have waited too long. A plugin that is only down may be up
// again before they have. It returns when to look again.
func (l *lineup) disperse(pools []job.Pool) (next time.Time) {
	up := make(map[string]job.Pool, len(pools))
	for _, pool := range pools {
		up[pool.Plugin] = pool
	}
	now := time.Now()
	next = now.Add(waitAtMost)
	var left, stuck []standby
	l.mu.Lock()
	for _, in := range l.lanes {
		pool, here := up[in.plugin]
		if !here || identity(pool) != in.identity {
			left = append(left, in.empty()...)
			continue
		}
		in.look(pool)
		if stale := in.shared.since(now.Add(-waitAtMost)); len(stale) > 0 {
			in.calm = now.Add(calmFor)
			left = append(left, stale...)
		}
		if in.alone.moved.Before(now.Add(-l.cfg.Lease)) {
			stuck = append(stuck, in.alone.since(now.Add(-l.cfg.Lease))...)
		}
		if len(in.shared.queue) > 0 {
			if due := in.shared.queue[0].joined.Add(waitAtMost); due.Before(next) {
				next = due
			}
		}
	}
	l.waiting -= len(left) + len(stuck)
	l.mu.Unlock()
	giveBack(left)
	l.putOff(stuck)
	return next
}

func giveBack(attempts []standby) {
	for _, a := range attempts {
		a.stop(job.CancelShutdown)
	}
}

// putOff gives jobs back that cannot run alone soon, for some time: they would
// be the first to be claimed again.
func (l *lineup) putOff(attempts []standby) {
	for _, a := range attempts {
		a.postpone(l.cfg.Lease)
	}
}

// close starts nothing more, and gives back what has lined up.
func (l *lineup) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.disperse(nil)
}

func (l *lineup) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}
