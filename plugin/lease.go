package plugin

import (
	"sync"
	"time"
)

// leaseMargin is how much of a lease is left when its attempt is told to stop:
// a sixth, at most maxLeaseMargin.
const (
	leaseMargin    = 6
	maxLeaseMargin = 5 * time.Second
)

// lease is how long an attempt may go on without hearing from the
// orchestrator. When only the margin is left it calls warn, when nothing is
// left expire. It is measured against the clock, not by a chain of timers: in
// a process that was stopped meanwhile it has run out at once.
type lease struct {
	warn   func()
	expire func()

	mu       sync.Mutex
	until    time.Time
	margin   time.Duration
	timer    *time.Timer
	released bool
}

// extend says that the lease is proven for d from now.
func (l *lease) extend(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return
	}
	l.margin = min(d/leaseMargin, maxLeaseMargin)
	l.until = time.Now().Add(d)
	if l.timer == nil {
		l.timer = time.AfterFunc(d-l.margin, l.check)
		return
	}
	l.timer.Reset(d - l.margin)
}

// check may come late, and just after an extension.
func (l *lease) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := time.Until(l.until)
	switch {
	case l.released:
	case left > l.margin:
		l.timer.Reset(left - l.margin)
	case left > 0:
		l.warn()
		l.timer.Reset(left)
	default:
		l.expire()
	}
}

// release ends the watch: the attempt is over.
func (l *lease) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
