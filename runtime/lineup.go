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
// hundred. How many are claimed ahead follows from how fast they pass: about
// as many as there will be slots for within Config.ClaimAhead. Jobs that take
// longer than that are not claimed ahead at all.
type lineup struct {
	cfg      Config
	handlers Handlers
	held     *holdings

	mu      sync.Mutex
	lanes   map[string]*lane
	waiting int // attempts in all lanes
	closed  bool

	// asked counts who wants attempts to be started. Whoever is the first does
	// it for all of them.
	asked atomic.Int64
}

// lane is the lineup of one plugin.
type lane struct {
	plugin   string
	identity string
	queue    []*attempt
	// since is when an attempt of the queue was last started, or joined it when
	// it was empty.
	since time.Time

	// pace is how many attempts end in a second; ended counts those since it
	// was last reckoned.
	pace     float64
	ended    int
	reckoned time.Time
}

const (
	// paceOver is over how long a pace is reckoned at least.
	paceOver = 10 * time.Millisecond
	// paceWeight is that of the latest pace in the mean.
	paceWeight = 0.5
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
	l.mu.Lock()
	in := l.laneOf(pool)
	if len(in.queue) == 0 {
		in.since = time.Now()
	}
	in.queue = append(in.queue, attempts...)
	l.waiting += len(attempts)
	l.mu.Unlock()
	l.advance()
}

// laneOf is called with the mutex held.
func (l *lineup) laneOf(pool job.Pool) *lane {
	found := l.lanes[pool.Plugin]
	if found == nil {
		found = &lane{plugin: pool.Plugin, reckoned: time.Now()}
		l.lanes[pool.Plugin] = found
	}
	found.identity = identity(pool)
	return found
}

// ended counts an attempt whose slot is free again, and starts the next.
func (l *lineup) ended(plugin string) {
	l.mu.Lock()
	if in := l.lanes[plugin]; in != nil {
		in.ended++
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
	now := time.Now()
	in.reckon(now)
	ahead := min(int(in.pace*l.cfg.ClaimAhead.Seconds()), 2*claimBatch)
	if len(in.queue) > 0 && len(in.queue) >= ahead/2 {
		return 0 // there is enough to go on with
	}
	others := l.waiting - len(in.queue)
	slots := min(pool.Free, max(l.cfg.Concurrency-running-others, 0))
	return max(slots+ahead-len(in.queue), 0)
}

// reckon brings the pace up to date.
func (in *lane) reckon(now time.Time) {
	over := now.Sub(in.reckoned)
	if over < paceOver {
		return
	}
	latest := float64(in.ended) / over.Seconds()
	in.pace += paceWeight * (latest - in.pace)
	in.ended, in.reckoned = 0, now
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
	for _, in := range l.inNoOrder() {
		for l.startNext(in) {
		}
	}
}

// inNoOrder returns the lanes in which attempts wait. None of them is always
// the last when there are fewer slots than attempts.
func (l *lineup) inNoOrder() []*lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == 0 || l.closed {
		return nil
	}
	lanes := make([]*lane, 0, len(l.lanes))
	for _, in := range l.lanes {
		if len(in.queue) > 0 {
			lanes = append(lanes, in)
		}
	}
	return lanes
}

// startNext starts the first attempt of a lane. It returns false when there is
// none, or no slot for it.
func (l *lineup) startNext(in *lane) bool {
	if running, _ := l.held.counts(); running >= l.cfg.Concurrency {
		return false
	}
	a := l.take(in)
	if a == nil {
		return false
	}
	leaseFor, ok := a.begin()
	if !ok {
		return true // it was stopped while it waited
	}
	run, err := l.handlers.Start(in.plugin, job.Assignment{Claimed: a.claimed, LeaseFor: leaseFor}, a)
	if err == nil {
		a.started(run)
		l.moved(in)
		return true
	}
	if a.putOff() && !l.putBack(in, a) {
		a.stop(job.CancelShutdown)
	}
	return false
}

func (l *lineup) take(in *lane) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(in.queue) == 0 || l.closed {
		return nil
	}
	first := in.queue[0]
	in.queue[0] = nil
	in.queue = in.queue[1:]
	l.waiting--
	return first
}

func (l *lineup) moved(in *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in.since = time.Now()
}

// putBack makes an attempt the first of its lane again; not any more when the
// lineup is closed.
func (l *lineup) putBack(in *lane, a *attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	in.queue = append([]*attempt{a}, in.queue...)
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
	var left []*attempt
	l.mu.Lock()
	for _, in := range l.lanes {
		switch {
		case len(in.queue) == 0:
		case up[in.plugin] != in.identity, now.Sub(in.since) > waitAtMost:
			left = append(left, in.queue...)
			l.waiting -= len(in.queue)
			in.queue, in.pace = nil, 0
		default:
			if until := in.since.Add(waitAtMost); until.Before(next) {
				next = until
			}
		}
	}
	l.mu.Unlock()
	for _, a := range left {
		a.stop(job.CancelShutdown)
	}
	return next
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
