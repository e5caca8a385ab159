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
	for {
		response, err := p.stream.Recv()
		if err != nil {
			p.receiveErr = err
			return
		}
		for _, record := range response.GetLogs() {
			p.log(record)
		}
		for _, progress := range response.GetProgress() {
			if a := p.hears(progress.GetHandle(), "progress", progress.GetProgress()); a != nil {
				a.reporter.Progress(progress.GetProgress())
			}
		}
		for _, checkpoint := range response.GetCheckpoints() {
			if a := p.hears(checkpoint.GetHandle(), "checkpoint", checkpoint.GetCheckpoint()); a != nil {
				a.reporter.Checkpoint(checkpoint.GetCheckpoint())
			}
		}
		if len(response.GetOutcomes()) > 0 {
			p.finish(response.GetOutcomes())
		}
	}
}

// hears returns the attempt that the value belongs to; nil when there is none or
// the value cannot be stored.
func (p *process) hears(handle uint64, what string, value []byte) *attempt {
	p.mu.Lock()
	a := p.attempts[handle]
	p.mu.Unlock()
	switch {
	case a == nil:
		p.complain("plugin reports on an attempt that is not running", handle, what)
		return nil
	case !message.IsJSON(value):
		p.complain("plugin reports a value that is not JSON", handle, what)
		return nil
	}
	return a
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
		endings = append(endings, ending{attempt: a, outcome: message.ReadOutcome(a.canceled, sent)})
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
