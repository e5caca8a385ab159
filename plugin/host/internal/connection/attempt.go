package connection

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
	// number counts from 1. An attempt that is not charged has the same number as the
	// next one; fence distinguishes them.
	number   int
	fence    int64
	trace    job.Trace
	reporter job.Reporter
	// recent is what it has reported this second. dropped says that progress was
	// dropped. Only the receiver uses them.
	recent  quota
	dropped bool

	// The process's lock guards the fields below.

	// canceled is the first reason to stop that the handler got; empty for none.
	canceled job.CancelReason
	// killed says that the process was killed because of this attempt.
	killed bool
	// rejected is how the attempt ends unless it succeeds; nil for the outcome that its
	// handler reports.
	rejected *job.Outcome
	// killAt is when the keeper must kill the process if the orchestrator is stopped.
	killAt time.Time
}

var _ job.Run = (*Attempt)(nil)

// locked calls change under the lock, unless the attempt has ended. It reports whether
// it called change.
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
		p.queued.Raise()
	}
}

// cancelRejected stops an attempt whose report was rejected.
const cancelRejected job.CancelReason = "refused"

// reject asks the handler to stop because of what it reported. The attempt then ends
// with the outcome, unless it still succeeds.
func (a *Attempt) reject(with job.Outcome) {
	a.locked(func() {
		if a.rejected == nil {
			a.rejected = &with
		}
	})
	a.Cancel(cancelRejected)
}

// outcome returns how the attempt ends, given what its handler reported.
func (a *Attempt) outcome(reported job.Outcome) job.Outcome {
	if a.rejected == nil || reported.Kind == job.Success {
		return reported
	}
	return *a.rejected
}

// Kill kills the process with its process group. Other attempts in the process are
// released, since they are not to blame.
func (a *Attempt) Kill() {
	if a.locked(func() { a.killed = true }) {
		a.process.fail(ErrKilled)
		a.process.child.End()
	}
}

// Extend tells the process that the lease lasts at least leaseFor from now.
func (a *Attempt) Extend(leaseFor time.Duration) {
	until := time.Now().Add(leaseFor)
	if a.locked(func() {
		a.killAt = killAt(until, leaseFor)
		a.process.queue.Extend(a.handle, until)
	}) {
		a.process.queued.Raise()
	}
}

// If the orchestrator is stopped, the keeper kills a process when 1/leaseReserve of a
// lease is left. A running orchestrator kills the process earlier, and reports that the
// lease was not renewed.
const leaseReserve = 24

// killAt returns when to kill the process of an attempt whose lease lasts at least
// until then, which is leaseFor from now.
func killAt(until time.Time, leaseFor time.Duration) time.Time {
	return until.Add(-leaseFor / leaseReserve)
}

// killEarlierLocked makes the keeper kill the process at that time, unless it has an
// earlier time already. This holds even if the orchestrator is stopped by then. To save
// messages, renewKillAt sends later times only when half of the current time is over,
// not at each extension.
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
	case left <= 0: // The time is over, or there is no attempt.
	case p.renewal == nil:
		p.renewal = time.AfterFunc(left/2, p.renewKillAt)
	default:
		p.renewal.Reset(left / 2)
	}
}

// renewKillAt sends the keeper the time that follows from the current leases.
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
