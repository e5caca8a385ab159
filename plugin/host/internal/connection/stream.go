package connection

import (
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// send writes what is queued, as one message if it fits. While one message is being
// sent the next one fills up, so more load makes larger messages, not more of them.
func (p *Process) send() {
	var spare message.Queue
	for {
		select {
		case <-p.queued:
		case <-p.stream.Context().Done():
			return
		}
		p.mu.Lock()
		pending := p.queue
		p.queue = spare
		p.mu.Unlock()
		for request := range pending.Messages(time.Now()) {
			p.sendingSince.Store(time.Now().UnixNano())
			err := p.stream.SendMsg(request)
			p.sendingSince.Store(0)
			if err != nil {
				return // RecvMsg returns the reason.
			}
		}
		spare = pending.Emptied()
	}
}

func (p *Process) receive() {
	defer close(p.received)
	in := intake{process: p, caps: p.spec.Settings.Caps}
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

// running returns the attempt with that handle; nil for none.
func (p *Process) running(handle uint64) *Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[handle]
}

// finish takes the attempts out of the table and frees their slots before it reports
// them, so that a reporter can start the next attempt at once.
func (p *Process) finish(outcomes []*handlerv1.Outcome) {
	ended := make([]Ended, 0, len(outcomes))
	var unknown []uint64
	p.mu.Lock()
	for _, sent := range outcomes {
		a := p.attempts[sent.GetHandle()]
		if a == nil {
			unknown = append(unknown, sent.GetHandle())
			continue
		}
		delete(p.attempts, sent.GetHandle())
		ended = append(ended, Ended{a, a.outcome(message.ReadOutcome(a.canceled, sent, p.spec.Settings.Caps.success()))})
	}
	if p.spec.Isolated && len(ended) > 0 {
		p.drainLocked()
		p.queued.Raise()
	}
	p.checkIdleLocked()
	p.mu.Unlock()
	p.report(ended)
	for _, handle := range unknown {
		p.complain("plugin reports on an attempt that is not running", handle, "outcome")
	}
}

// complain logs a breach of the protocol, within the limit for output.
func (p *Process) complain(message string, handle uint64, what string) {
	if p.child.Output().Allow() {
		p.child.Output().Log.Warn(message, "handle", handle, "what", what)
	}
}
