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
	first, last *timeLimit
	timer       *time.Timer // goes off when the time of the first is over, or that of one before it was
}

// timeLimit is the place of an attempt in a queue; it is in none until its handler has begun, and
// when that is done.
type timeLimit struct {
	attempt    *attempt
	queue      *limitQueue
	ends       time.Time
	prev, next *timeLimit
}

// start asks the attempt to stop after that time from now on, unless its limit ends before. Only the
// first start of an attempt counts.
func (t *timeLimits) start(a *attempt, now time.Time, after time.Duration) {
	l := &a.limit
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.queue != nil {
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
	l.attempt, l.queue, l.ends, l.prev = a, q, now.Add(after), q.last
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

// end ends the attempt's limit, if it has one that has not passed.
func (t *timeLimits) end(a *attempt) {
	l := &a.limit
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := l.queue; q != nil {
		q.remove(l)
		if q.first == nil && len(t.queues) > fewQueues && q.timer.Stop() {
			delete(t.queues, q.length)
		}
	}
}

// remove is called with the mutex held.
func (q *limitQueue) remove(l *timeLimit) {
	if l.prev == nil {
		q.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		q.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.queue, l.prev, l.next = nil, nil, nil
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
	for q.first != nil && !q.first.ends.After(now) {
		over = append(over, q.first.attempt)
		q.remove(q.first)
	}
	if q.first == nil {
		delete(q.of.queues, q.length)
		return over
	}
	q.timer.Reset(q.first.ends.Sub(now))
	return over
}
