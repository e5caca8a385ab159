package process

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Attempt is one run of a handler in a process. It is in the process's table from
// its start until it ends; the goroutine that takes it out reports its end.
type Attempt struct {
	JobType string
	Begun   time.Time

	process *Process
	handle  uint64
	jobID   job.ID
	// number counts from 1. fence tells apart attempts with the same number, which
	// happens when one is not charged.
	number   int
	fence    int64
	trace    job.Trace
	reporter job.Reporter
	// recent is what it has reported this second. dropped says that progress was
	// dropped. Only the receiver uses them.
	recent  quota
	dropped bool

	// What follows is guarded by the process.

	// canceled is the first reason to stop that the handler got; empty for none.
	canceled job.CancelReason
	// killed says that the process was killed because of this attempt.
	killed bool
	// rejected is how the attempt ends unless it succeeds; nil for as its handler
	// says.
	rejected *job.Outcome
	// killAt is when the process must be gone if the orchestrator does not run.
	killAt time.Time
}

var _ job.Run = (*Attempt)(nil)

// locked calls change under the lock, unless the attempt has ended. It reports
// whether it did.
func (a *Attempt) locked(change func()) bool {
	a.process.mu.Lock()
	defer a.process.mu.Unlock()
	if a.process.attempts[a.handle] != a {
		return false
	}
	change()
	return true
}

// Cancel asks the handler to stop. Only the first reason is sent and counts.
func (a *Attempt) Cancel(reason job.CancelReason) {
	p := a.process
	if a.locked(func() {
		if a.canceled == "" {
			a.canceled = reason
			p.queue.Cancel(a.handle, reason)
		}
	}) {
		p.wake()
	}
}

// cancelRejected is the reason to stop of an attempt whose report was rejected.
const cancelRejected job.CancelReason = "refused"

// reject asks the handler to stop because of what it reported. The attempt then ends
// with the outcome, unless it succeeds all the same.
func (a *Attempt) reject(with job.Outcome) {
	a.locked(func() {
		if a.rejected == nil {
			a.rejected = &with
		}
	})
	a.Cancel(cancelRejected)
}

// outcome is how the attempt ends when its handler reports this.
func (a *Attempt) outcome(reported job.Outcome) job.Outcome {
	if a.rejected == nil || reported.Kind == job.Success {
		return reported
	}
	return *a.rejected
}

// Kill kills the process with its process group. Other attempts in it are released:
// they are not to blame, and their owner did not vanish.
func (a *Attempt) Kill() {
	if a.locked(func() { a.killed = true }) {
		a.process.fail(ErrKilled)
		a.process.child.End()
	}
}

// Extend tells the process that the lease is proven for leaseFor from now.
func (a *Attempt) Extend(leaseFor time.Duration) {
	until := time.Now().Add(leaseFor)
	if a.locked(func() {
		a.killAt = killAt(until, leaseFor)
		a.process.queue.Extend(a.handle, until)
	}) {
		a.process.wake()
	}
}

// leaseReserve is the part of a lease, one in so many, that is left when the keeper
// kills a process because the orchestrator does not run. An orchestrator that runs
// kills earlier, so that a lease that was not renewed is reported as such.
const leaseReserve = 24

// killAt is when to kill the process of an attempt whose lease is proven until then,
// for leaseFor from now.
func killAt(until time.Time, leaseFor time.Duration) time.Time {
	return until.Add(-leaseFor / leaseReserve)
}

// killEarlierLocked makes the keeper kill the process at that time, or at an earlier
// time that it already knows, even if the orchestrator is stopped by then. The keeper
// gets a later time only when half of the present one is over, not at each extension.
func (p *Process) killEarlierLocked(at time.Time) {
	if p.killAt.IsZero() || at.Before(p.killAt) {
		p.setKillAtLocked(at)
	}
}

func (p *Process) setKillAtLocked(at time.Time) {
	p.killAt = at
	p.child.KillAt(at)
	left := time.Until(at)
	switch {
	case left <= 0: // It is over already, or there is no attempt.
	case p.renewal == nil:
		p.renewal = time.AfterFunc(left/2, p.renewKillAt)
	default:
		p.renewal.Reset(left / 2)
	}
}

// renewKillAt sends the keeper the time that follows from the present leases.
func (p *Process) renewKillAt() {
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
	p.setKillAtLocked(first)
}
