package runtime

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

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
		for l.startNext(in, &in.alone) {
		}
		for l.startNext(in, &in.shared) {
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

// startNext starts the first attempt of a line. It returns false when there is
// none, or no slot for it.
func (l *lineup) startNext(in *lane, of *line) bool {
	if running, _ := l.held.counts(); running >= l.cfg.Concurrency {
		return false
	}
	next, ok := l.take(in, of)
	if !ok {
		return false
	}
	leaseFor, ok := next.begin(l.cfg.Lease / askBefore)
	if !ok { // it was stopped while it waited
		l.held.putOff()
		return true
	}
	assignment := job.Assignment{Claimed: next.claimed, LeaseFor: leaseFor, Isolated: next.alone()}
	run, err := l.handlers.Start(in.plugin, assignment, next.attempt)
	if err == nil {
		next.started(run)
		return true
	}
	if next.putOff() {
		l.held.putOff()
		if !l.putBack(of, next) {
			next.stop(job.CancelShutdown)
		}
	}
	return false
}

// take counts the first of the queue as running, so that nobody finds it
// neither here nor there. The slots for attempts that run alone are counted
// here: they are few, and their queue is long. Nothing else is started while no
// process of the plugin is up.
func (l *lineup) take(in *lane, of *line) (standby, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || of == &in.alone && of.free < 1 || of == &in.shared && in.slots == 0 {
		return standby{}, false
	}
	first, ok := of.take()
	if !ok {
		return standby{}, false
	}
	if of == &in.alone {
		of.free--
		of.moved = time.Now()
	}
	l.waiting--
	l.held.begun()
	return first, true
}
