package host

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// attempt is one run of a handler in a process. It is in the process's table
// from its start until it is finished; whoever takes it out reports its end.
type attempt struct {
	process *process
	handle  uint64
	jobID   job.ID
	jobType string
	// number is the attempt's, counted from 1; fence tells it from others of that
	// number, which are not charged.
	number   int
	fence    int64
	trace    job.Trace
	begun    time.Time
	reporter job.Reporter
	// canceled is the reason the handler was told first; empty while it was
	// told none. Guarded by the process.
	canceled job.CancelReason
	// killed says that the process was killed because of this attempt. Guarded
	// by the process.
	killed bool
	// refused is how it ends unless it succeeds; nil for as its handler says.
	// Guarded by the process.
	refused *job.Outcome
	// quota and dropped are the receiver's: what it has reported of late, and
	// whether progress of it was dropped.
	quota   quota
	dropped bool
	// killAt is when the process must be gone, should we not run by then. Guarded
	// by the process.
	killAt time.Time
}

var _ job.Run = (*attempt)(nil)

// Cancel asks the handler to stop. Only the first reason is sent and counts:
// the handler acts on that one.
func (a *attempt) Cancel(reason job.CancelReason) {
	p := a.process
	p.mu.Lock()
	if p.attempts[a.handle] != a || a.canceled != "" {
		p.mu.Unlock()
		return
	}
	a.canceled = reason
	p.queue.Cancel(a.handle, reason)
	p.mu.Unlock()
	p.wake()
}

// refuse asks the handler to stop because of what it has reported. It ends with
// the outcome then, unless it succeeds all the same.
func (a *attempt) refuse(with job.Outcome) {
	a.process.mu.Lock()
	if a.refused == nil {
		a.refused = &with
	}
	a.process.mu.Unlock()
	a.Cancel(cancelRefused)
}

// cancelRefused is the reason of an attempt that is refused.
const cancelRefused job.CancelReason = "refused"

// outcome is how the attempt ends when its handler says this.
func (a *attempt) outcome(said job.Outcome) job.Outcome {
	if a.refused == nil || said.Kind == job.Success {
		return said
	}
	return *a.refused
}

// Kill ends the process group that the attempt runs in. The other attempts in it
// are given back: they are not to blame, and their owner did not vanish.
func (a *attempt) Kill() {
	p := a.process
	p.mu.Lock()
	running := p.attempts[a.handle] == a
	if running {
		a.killed = true
	}
	p.mu.Unlock()
	if running {
		p.fail(errKilled)
		p.child.End()
	}
}

// Extend tells the process that the lease is proven for leaseFor from now.
func (a *attempt) Extend(leaseFor time.Duration) {
	p := a.process
	p.mu.Lock()
	if p.attempts[a.handle] != a {
		p.mu.Unlock()
		return
	}
	until := time.Now().Add(leaseFor)
	a.killAt = killAt(until, leaseFor)
	p.queue.Extend(a.handle, until)
	p.mu.Unlock()
	p.wake()
}

// finished is a run that never began.
type finished struct{}

func (finished) Cancel(job.CancelReason) {}
func (finished) Kill()                   {}
func (finished) Extend(time.Duration)    {}
