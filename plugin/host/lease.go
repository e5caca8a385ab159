package host

import (
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
)

// leaseReserve is the part of a lease, one in so many, that must be left when a
// process is killed because we do not run. Its attempts are killed by us before, when
// the lease is not renewed, so that a kill that is due has its usual reason.
const leaseReserve = 24

// killAt is when the process of an attempt must be killed, if its lease is proven
// until then, for leaseFor from now.
func killAt(until time.Time, leaseFor time.Duration) time.Time {
	return until.Add(-leaseFor / leaseReserve)
}

// holdLocked has the process killed at that time, or at an earlier one that its keeper
// has been told already, even if we are stopped by then. The keeper is told again
// only when half of its time is over: so it does not hear of every extension.
func (p *process) holdLocked(at time.Time) {
	if p.heldUntil.IsZero() || at.Before(p.heldUntil) {
		p.tellKeeperLocked(at)
	}
}

func (p *process) tellKeeperLocked(at time.Time) {
	p.heldUntil = at
	p.child.KillAt(at)
	left := time.Until(at)
	switch {
	case left <= 0:
		// Nothing is left to postpone, or nothing is due.
	case p.renewal == nil:
		p.renewal = time.AfterFunc(left/2, p.renew)
	default:
		p.renewal.Reset(left / 2)
	}
}

// renew tells the keeper the time that follows from the leases as they are now.
func (p *process) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	var first time.Time
	for _, a := range p.attempts {
		if first.IsZero() || a.killAt.Before(first) {
			first = a.killAt
		}
	}
	p.tellKeeperLocked(first)
}

// stalled is the death of a process that was killed because we did not run. It is
// nobody's fault, as a kill on request is.
type stalled struct{ child.Death }

func (stalled) Is(target error) bool { return target == errKilled }

func (s stalled) Unwrap() error { return s.Death }

// death is how the process has ended; only when it is gone.
func (p *process) death() error {
	death := p.child.Death()
	if death.Cause == child.Stalled {
		return stalled{death}
	}
	return death
}
