package runtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// dispatcher keeps claimed attempts until their plugin has a slot, and starts them in
// a goroutine of its own.
//
// Some jobs are prefetched: short ones would otherwise wait for a claim each time a
// few slots are free, and a claim of ten costs as much as one of a hundred. How many
// follows from how long the latest attempts took: about as many as there will be slots
// for within Config.Prefetch. Jobs that take longer are not prefetched, and none are
// soon after a process of the plugin has died.
//
// Isolated attempts wait in a queue of their own, so that nobody waits behind them. A
// claim cannot know which they are: they come on top of what was wanted.
type dispatcher struct {
	cfg      Config
	inFlight *inFlight
	wake     loop.Signal        // there may be something to start
	passes   chan chan struct{} // closed when everything that can be started is

	mu      sync.Mutex
	queues  map[string]*pluginQueue
	order   []*pluginQueue // all of them
	turned  []*pluginQueue // what inTurn returned last
	turn    int            // which queue comes first next time
	waiting int            // attempts in all queues
	taken   bool           // one is out of its queue and may be put back
	closed  bool
}

func newDispatcher(cfg Config, inFlight *inFlight) *dispatcher {
	return &dispatcher{
		cfg: cfg, inFlight: inFlight, wake: loop.NewSignal(), passes: make(chan chan struct{}), queues: make(map[string]*pluginQueue),
	}
}

// run starts attempts until the context ends. The function starts one; it returns
// false when it has put it back, because there is no slot.
func (d *dispatcher) run(ctx context.Context, start func(*attempt) bool) {
	for {
		select {
		case <-d.wake:
			d.startAll(start)
		case passed := <-d.passes:
			d.startAll(start)
			close(passed)
		case <-ctx.Done():
			return
		}
	}
}

// dispatch returns once every attempt is started that there is a slot for, or the
// context ends.
func (d *dispatcher) dispatch(ctx context.Context) {
	if !d.busy() {
		return
	}
	passed := make(chan struct{})
	select {
	case d.passes <- passed:
		<-passed
	case <-ctx.Done():
	}
}

func (d *dispatcher) startAll(start func(*attempt) bool) {
	for _, of := range d.inTurn() {
		for _, q := range []*queue{&of.isolated, &of.shared} {
			for a, ok := d.take(of, q); ok; a, ok = d.take(of, q) {
				slot := start(a)
				d.mu.Lock()
				of.starting, d.taken = nil, false
				d.mu.Unlock()
				if !slot {
					break
				}
			}
		}
	}
}

// busy reports whether attempts wait for a slot, or one is being started, which may be put back.
func (d *dispatcher) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting > 0 || d.taken
}

// inTurn returns the queues, another one first each time, so that none is always the
// last when there are fewer slots than attempts. The result is valid until the next call.
func (d *dispatcher) inTurn() []*pluginQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == 0 || d.closed {
		return nil
	}
	d.turn = (d.turn + 1) % len(d.order)
	d.turned = append(append(d.turned[:0], d.order[d.turn:]...), d.order[:d.turn]...)
	return d.turned
}

// take removes the first attempt of a queue and counts it as running, so that it is
// always counted somewhere. The slots for isolated attempts are counted here: they are
// few, and their queue is long. Shared attempts wait while no process of the plugin is
// up.
func (d *dispatcher) take(of *pluginQueue, q *queue) (*attempt, bool) {
	if running, _ := d.inFlight.counts(); running >= d.cfg.Concurrency {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || q == &of.isolated && q.free < 1 || q == &of.shared && of.slots == 0 {
		return nil, false
	}
	first, ok := q.take()
	if !ok {
		return nil, false
	}
	if q == &of.isolated {
		q.free--
		q.moved = time.Now()
	} else {
		of.starting = first
	}
	d.waiting--
	d.taken = true
	d.inFlight.starting()
	return first, true
}

// putBack makes an attempt the first of its queue again. It returns false when the
// dispatcher is closed.
func (d *dispatcher) putBack(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	q := d.queueOf(*a.pool).queueOf(a)
	q.attempts = slices.Insert(q.attempts, 0, a)
	d.waiting++
	return true
}

// add queues claimed attempts for a slot of the pool.
func (d *dispatcher) add(pool job.Pool, attempts []*attempt) {
	now := time.Now()
	var replaced, surplus []*attempt
	d.mu.Lock()
	of := d.queueOf(pool)
	of.look(pool)
	if of.identity != identity(pool) {
		replaced = of.empty()
		of.identity, of.mean = identity(pool), 0
	}
	for _, a := range attempts {
		a.queued = now
		if !of.queueOf(a).add(a) {
			surplus = append(surplus, a)
		}
	}
	d.waiting += len(attempts) - len(replaced) - len(surplus)
	d.mu.Unlock()
	release(replaced)
	d.postpone(surplus)
}

// queueOf is called with the mutex held.
func (d *dispatcher) queueOf(pool job.Pool) *pluginQueue {
	found := d.queues[pool.Plugin]
	if found == nil {
		found = newPluginQueue(pool)
		d.queues[pool.Plugin] = found
		d.order = append(d.order, found)
	}
	return found
}

// ended counts an attempt whose slot is free again, and wakes the dispatcher.
func (d *dispatcher) ended(a *attempt, as job.OutcomeKind, took time.Duration) {
	d.mu.Lock()
	if of := d.queues[a.pool.Plugin]; of != nil {
		of.ended(a, as, took)
	}
	more := d.waiting > 0 || d.taken
	d.mu.Unlock()
	if more {
		d.wake.Raise()
	}
}

// wanted returns how many jobs to claim for the pool now: for its free slots, and to
// prefetch.
func (d *dispatcher) wanted(pool job.Pool, running int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.queueOf(pool)
	of.look(pool)
	ahead, waiting := of.prefetch(d.cfg, time.Now()), of.waitingShared()
	if waiting > 0 && (waiting >= ahead/2 || of.identity != identity(pool)) {
		return 0 // there is enough to go on with
	}
	room := d.cfg.Concurrency - running
	for _, other := range d.queues {
		if other != of {
			room -= min(len(other.shared.attempts), other.shared.free)
		}
	}
	return max(min(pool.Free, max(room, 0))+ahead-waiting, 0)
}

// jobTypeOf is a job type of a plugin.
type jobTypeOf struct{ plugin, jobType string }

// waitingFor counts the shared attempts of each job type that wait for the plugins.
func (d *dispatcher) waitingFor(plugins map[string]bool) map[jobTypeOf]int {
	if len(plugins) == 0 {
		return nil
	}
	count := make(map[jobTypeOf]int)
	d.mu.Lock()
	defer d.mu.Unlock()
	for plugin := range plugins {
		of := d.queues[plugin]
		if of == nil {
			continue
		}
		for _, a := range of.shared.attempts {
			count[jobTypeOf{plugin, a.claimed.Type}]++
		}
		if of.starting != nil {
			count[jobTypeOf{plugin, of.starting.claimed.Type}]++
		}
	}
	return count
}

// releaseStale releases jobs whose plugin is gone or serves something else by now, and
// those that have waited too long. A plugin that is only down may be up again before
// that. It returns when to look again.
func (d *dispatcher) releaseStale(pools []job.Pool) (next time.Time) {
	up := make(map[string]job.Pool, len(pools))
	for _, pool := range pools {
		up[pool.Plugin] = pool
	}
	now := time.Now()
	next = now.Add(maxWait)
	var left, stuck []*attempt
	d.mu.Lock()
	for _, of := range d.queues {
		pool, here := up[of.plugin]
		if !here || identity(pool) != of.identity {
			left = append(left, of.empty()...)
			continue
		}
		of.look(pool)
		if stale := of.shared.takeSince(now.Add(-maxWait)); len(stale) > 0 {
			of.prefetchAfter = now.Add(noPrefetchFor)
			left = append(left, stale...)
		}
		if of.isolated.moved.Before(now.Add(-d.cfg.Lease)) {
			stuck = append(stuck, of.isolated.takeSince(now.Add(-d.cfg.Lease))...)
		}
		if len(of.shared.attempts) > 0 {
			if due := of.shared.attempts[0].queued.Add(maxWait); due.Before(next) {
				next = due
			}
		}
	}
	d.waiting -= len(left) + len(stuck)
	d.mu.Unlock()
	release(left)
	d.postpone(stuck)
	return next
}

func release(attempts []*attempt) {
	for _, a := range attempts {
		a.stop(job.CancelShutdown)
	}
}

// postpone releases jobs that cannot run isolated soon, for some time: they would be
// the first to be claimed again.
func (d *dispatcher) postpone(attempts []*attempt) {
	for _, a := range attempts {
		a.postpone(d.cfg.Lease)
	}
}

// close starts nothing more, and releases what waits.
func (d *dispatcher) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.releaseStale(nil)
}

func (d *dispatcher) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting
}
