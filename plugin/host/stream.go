package host

import (
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// send writes what is queued, as one message if it fits. While a message is on
// its way the next one gathers, so that load makes messages larger, not more.
func (p *process) send() {
	for {
		select {
		case <-p.nudge:
		case <-p.stream.Context().Done():
			return
		}
		p.mu.Lock()
		pending := p.queue
		p.queue = message.Queue{}
		p.mu.Unlock()
		for request := range pending.Messages(time.Now()) {
			p.sendingSince.Store(time.Now().UnixNano())
			err := p.stream.Send(request)
			p.sendingSince.Store(0)
			if err != nil {
				// The receiver learns the reason.
				return
			}
		}
	}
}

func (p *process) receive() {
	defer close(p.received)
	in := intake{process: p, caps: p.gen.settings.Caps}
	for {
		var box message.Inbox
		err := p.stream.RecvMsg(&box)
		if err == nil {
			err = in.received(&box)
		}
		if err != nil {
			p.receiveErr = err
			return
		}
	}
}

// running returns the attempt of that handle; nil when there is none.
func (p *process) running(handle uint64) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[handle]
}

type ending struct {
	attempt *attempt
	outcome job.Outcome
}

// finish takes the attempts out of the table, frees their slots, and then
// reports them: who hears of an end can start the next attempt at once.
func (p *process) finish(outcomes []*handlerv1.Outcome) {
	endings := make([]ending, 0, len(outcomes))
	var unknown []uint64
	p.mu.Lock()
	for _, sent := range outcomes {
		a := p.attempts[sent.GetHandle()]
		if a == nil {
			unknown = append(unknown, sent.GetHandle())
			continue
		}
		delete(p.attempts, sent.GetHandle())
		endings = append(endings, ending{attempt: a, outcome: a.outcome(message.ReadOutcome(a.canceled, sent, p.gen.settings.Caps.Result))})
	}
	over := p.alone && len(endings) > 0
	if over {
		p.drainLocked()
	}
	p.tellIdleLocked()
	p.mu.Unlock()
	if over {
		p.wake()
	}
	p.gen.settle(p, endings)
	for _, e := range endings {
		e.attempt.reporter.Finished(e.outcome)
	}
	for _, handle := range unknown {
		p.complain("plugin reports on an attempt that is not running", handle, "outcome")
	}
}

// complain logs what a process does against the protocol, as often as it may
// print.
func (p *process) complain(message string, handle uint64, what string) {
	if p.child.Output().Allow() {
		p.child.Output().Log.Warn(message, "handle", handle, "what", what)
	}
}
