package runtime

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// timeLimits asks handlers to stop whose time is over. Attempts that may take equally long run out
// of time in the order in which they began, so that one timer is enough for all of them: it goes off
// for the first. Most attempts end before that, and cost it nothing.
type timeLimits struct {
	mu     sync.Mutex
	queues map[time.Duration]*limitQueue
}

// fewQueues is up to how many queues one without an attempt is kept until its timer goes off: it will
// be needed again. Most jobs have one of a few limits, but somebody may give each job its own.
const fewQueues = 16

// limitQueue are the attempts that may take equally long, the first to begin first.
type limitQueue struct {
	of          *timeLimits
	length      time.Duration
	first, last *attempt
	timer       *time.Timer // goes off when the time of the first is over, or that of one before it was
}

// timeLimit is the place of an attempt in a queue; it is in none until its handler has begun, and
// when that is done.
type timeLimit struct {
	queue      *limitQueue
	ends       time.Time
	prev, next *attempt
}

// start asks the attempt to stop after that time from now on, unless its limit ends before. Only the
// first start of an attempt counts. One that is given a time before that of the last start, with the same
// limit, is stopped as late as that one.
func (t *timeLimits) start(a *attempt, now time.Time, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.limit.queue != nil {
		return
	}
	q := t.queues[after]
	if q == nil {
		if t.queues == nil {
			t.queues = make(map[time.Duration]*limitQueue)
		}
		q = &limitQueue{of: t, length: after}
		q.timer = time.AfterFunc(after, q.passed)
		t.queues[after] = q
	}
	a.limit = timeLimit{queue: q, ends: now.Add(after), prev: q.last}
	if q.last == nil {
		q.first = a
	} else {
		q.last.limit.next = a
	}
	q.last = a
}

// end ends the attempt's limit, if it has one that has not passed.
func (t *timeLimits) end(a *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := a.limit.queue; q != nil {
		q.remove(a)
		if q.first == nil && len(t.queues) > fewQueues && q.timer.Stop() {
			delete(t.queues, q.length)
		}
	}
}

// remove is called with the mutex held.
func (q *limitQueue) remove(a *attempt) {
	prev, next := a.limit.prev, a.limit.next
	if prev == nil {
		q.first = next
	} else {
		prev.limit.next = next
	}
	if next == nil {
		q.last = prev
	} else {
		next.limit.prev = prev
	}
	a.limit = timeLimit{}
}

// passed stops the attempts whose time is over, and waits for the next one's.
func (q *limitQueue) passed() {
	for _, a := range q.over() {
		a.stop(job.CancelTimeout)
	}
}

func (q *limitQueue) over() (over []*attempt) {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	now := time.Now()
	for q.first != nil && !q.first.limit.ends.After(now) {
		over = append(over, q.first)
		q.remove(q.first)
	}
	if q.first == nil {
		delete(q.of.queues, q.length)
		return over
	}
	q.timer.Reset(q.first.limit.ends.Sub(now))
	return over
}
