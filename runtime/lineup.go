package runtime

import (
	"slices"
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
// Config.ClaimAhead. Jobs that take longer than that are not claimed ahead.
type lineup struct {
	cfg      Config
	handlers Handlers
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

// lane is the lineup of one plugin.
type lane struct {
	plugin   string
	identity string
	queue    []standby
	// running counts the attempts that were started and have not ended; free
	// is how many slots there were when the pool was last looked at.
	running, free int
	// mean is how long attempts have taken of late; 0 while none has ended.
	mean time.Duration
}

// standby is an attempt that waits, and since when.
type standby struct {
	*attempt
	since time.Time
}

const (
	// meanOver is over about how many attempts the mean is taken.
	meanOver = 16
	// waitAtMost is how long an attempt waits for a slot before others get the
	// job: the jobs before it take longer than their predecessors did.
	waitAtMost = time.Second
)

func newLineup(cfg Config, handlers Handlers, held *holdings) *lineup {
	return &lineup{cfg: cfg, handlers: handlers, held: held, lanes: make(map[string]*lane)}
}

// join lets claimed attempts wait for a slot of the pool, and starts as many as
// there are slots for.
func (l *lineup) join(pool job.Pool, attempts []*attempt) {
	now := time.Now()
	l.mu.Lock()
	in := l.laneOf(pool)
	replaced := in.queue
	if in.identity == identity(pool) {
		replaced = nil
	} else {
		in.identity, in.queue, in.mean = identity(pool), nil, 0
		l.waiting -= len(replaced)
	}
	for _, a := range attempts {
		in.queue = append(in.queue, standby{a, now})
	}
	l.waiting += len(attempts)
	l.mu.Unlock()
	giveBack(replaced)
	l.advance()
}

// laneOf is called with the mutex held.
func (l *lineup) laneOf(pool job.Pool) *lane {
	found := l.lanes[pool.Plugin]
	if found == nil {
		found = &lane{plugin: pool.Plugin, identity: identity(pool)}
		l.lanes[pool.Plugin] = found
		l.order = append(l.order, found)
	}
	found.free = pool.Free
	return found
}

// ended counts an attempt whose slot is free again, and starts the next.
func (l *lineup) ended(plugin string, took time.Duration) {
	l.mu.Lock()
	if in := l.lanes[plugin]; in != nil {
		in.running--
		if in.mean == 0 {
			in.mean = took
		}
		in.mean += (took - in.mean) / meanOver
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
	ahead := in.ahead(l.cfg)
	if len(in.queue) > 0 && (len(in.queue) >= ahead/2 || in.identity != identity(pool)) {
		return 0 // there is enough to go on with
	}
	room := l.cfg.Concurrency - running
	for _, other := range l.lanes {
		if other != in {
			room -= min(len(other.queue), other.free)
		}
	}
	return max(min(pool.Free, max(room, 0))+ahead-len(in.queue), 0)
}

// ahead is how many attempts the slots of the lane can take within the time to
// claim ahead for.
func (in *lane) ahead(cfg Config) int {
	if in.mean <= 0 || in.mean > cfg.ClaimAhead {
		return 0
	}
	slots := min(in.running+in.free, cfg.Concurrency)
	return int(min(int64(slots)*int64(cfg.ClaimAhead/in.mean), 2*claimBatch))
}

// advance starts attempts as long as there are slots for them. It may be
// called by anybody at any time, also while an attempt is being started: then
// whoever starts it goes on.
func (l *lineup) advance() {
	if l.asked.Add(1) > 1 {
		return
	}
	for {
		asked := l.asked.Load()
		l.startAll()
		if l.asked.CompareAndSwap(asked, 0) {
			return
		}
	}
}

func (l *lineup) startAll() {
	for _, in := range l.inTurn() {
		for l.startNext(in) {
		}
	}
}

// inTurn returns the lanes, another one first each time, so that none is always
// the last when there are fewer slots than attempts.
func (l *lineup) inTurn() []*lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == 0 || l.closed {
		return nil
	}
	l.turn = (l.turn + 1) % len(l.order)
	return slices.Concat(l.order[l.turn:], l.order[:l.turn])
}

// startNext starts the first attempt of a lane. It returns false when there is
// none, or no slot for it.
func (l *lineup) startNext(in *lane) bool {
	if running, _ := l.held.counts(); running >= l.cfg.Concurrency {
		return false
	}
	next, ok := l.take(in)
	if !ok {
		return false
	}
	leaseFor, ok := next.begin()
	if !ok { // it was stopped while it waited
		l.held.putOff()
		l.stayed(in)
		return true
	}
	run, err := l.handlers.Start(in.plugin, job.Assignment{Claimed: next.claimed, LeaseFor: leaseFor}, next.attempt)
	if err == nil {
		next.started(run)
		return true
	}
	if next.putOff() {
		l.held.putOff()
		if !l.putBack(in, next) {
			next.stop(job.CancelShutdown)
		}
	}
	return false
}

// take counts the first of the queue as running, so that nobody finds it
// neither here nor there.
func (l *lineup) take(in *lane) (standby, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(in.queue) == 0 || l.closed {
		return standby{}, false
	}
	first := in.queue[0]
	in.queue[0] = standby{}
	in.queue = in.queue[1:]
	l.waiting--
	in.running++
	l.held.begun()
	return first, true
}

// stayed says that what was taken did not run.
func (l *lineup) stayed(in *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in.running--
}

// putBack makes an attempt the first of its lane again; not any more when the
// lineup is closed.
func (l *lineup) putBack(in *lane, w standby) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	in.running--
	if l.closed {
		return false
	}
	in.queue = append([]standby{w}, in.queue...)
	l.waiting++
	return true
}

// disperse gives jobs back whose plugin is gone or serves something else by
// now, and those that have waited too long. It returns when to look again.
func (l *lineup) disperse(pools []job.Pool) (next time.Time) {
	up := make(map[string]string, len(pools))
	for _, pool := range pools {
		up[pool.Plugin] = identity(pool)
	}
	now := time.Now()
	next = now.Add(waitAtMost)
	var left []standby
	l.mu.Lock()
	for _, in := range l.lanes {
		stale := len(in.queue)
		if up[in.plugin] == in.identity {
			stale = 0
			for stale < len(in.queue) && now.Sub(in.queue[stale].since) >= waitAtMost {
				stale++
			}
		}
		left = append(left, in.queue[:stale]...)
		in.queue = in.queue[stale:]
		l.waiting -= stale
		if len(in.queue) > 0 {
			if due := in.queue[0].since.Add(waitAtMost); due.Before(next) {
				next = due
			}
		}
	}
	l.mu.Unlock()
	giveBack(left)
	return next
}

func giveBack(attempts []standby) {
	for _, a := range attempts {
		a.stop(job.CancelShutdown)
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
