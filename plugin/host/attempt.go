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
	p.queue.Extend(a.handle, time.Now().Add(leaseFor))
	p.mu.Unlock()
	p.wake()
}

// finished is a run that never began.
type finished struct{}

func (finished) Cancel(job.CancelReason) {}
func (finished) Kill()                   {}
func (finished) Extend(time.Duration)    {}
