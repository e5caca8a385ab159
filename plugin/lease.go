package plugin

import (
	"sync"
	"time"
)

// An attempt is asked to stop when a sixth of its lease is left, at most
// maxLeaseMargin.
const (
	leaseMargin    = 6
	maxLeaseMargin = 5 * time.Second
)

// lease is how long an attempt may go on without an extension from the
// orchestrator. It calls warn when only the margin is left, and expire when nothing
// is left. It compares with the clock, so that it runs out in a process that was
// stopped for a while.
type lease struct {
	warn   func()
	expire func()

	mu       sync.Mutex
	until    time.Time
	margin   time.Duration
	timer    *time.Timer
	released bool
}

// extend makes the lease last for d from now.
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

// check may run late, and just after an extension.
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

// release ends the lease: the attempt is over.
func (l *lease) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
