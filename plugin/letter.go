package plugin

import "github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"

const (
	// fullMessage is the size, in bytes, from which on a message takes nothing
	// more; a larger item goes alone.
	fullMessage = 1 << 20
	// itemOverhead is more than an item takes on the wire beside its texts.
	itemOverhead = 128
)

// letter is what the outbox sends at once.
type letter struct {
	logs []*handlerv1.Log
	// noted are the attempts with notes, in the order of their first.
	noted    []*attempt
	outcomes []*handlerv1.Outcome
}

func (l *letter) empty() bool { return len(l.logs)+len(l.noted)+len(l.outcomes) == 0 }

// messages cuts the letter into messages. Outcomes come last, so that nothing
// of an attempt comes after its end. The notes that it holds are taken from
// their attempts: the outbox's mutex is held.
func (l *letter) messages() []*handlerv1.WorkResponse {
	var cut cutter
	for _, record := range l.logs {
		m := cut.room(len(record.GetMessage()) + len(record.GetAttributes()))
		m.Logs = append(m.Logs, record)
	}
	for _, a := range l.noted {
		handle := a.start.GetHandle()
		if progress := a.notes.progress; progress != nil {
			m := cut.room(len(progress))
			m.Progress = append(m.Progress, &handlerv1.Progress{Handle: handle, Progress: progress})
		}
		if checkpoint := a.notes.checkpoint; checkpoint != nil {
			m := cut.room(len(checkpoint))
			m.Checkpoints = append(m.Checkpoints, &handlerv1.Checkpoint{Handle: handle, Checkpoint: checkpoint})
		}
		a.notes.progress, a.notes.checkpoint = nil, nil
	}
	for _, ended := range l.outcomes {
		failed := ended.GetFailed()
		m := cut.room(len(ended.GetSucceeded().GetResult()) +
			len(failed.GetCode()) + len(failed.GetMessage()) + len(failed.GetStack()))
		m.Outcomes = append(m.Outcomes, ended)
	}
	return cut.messages
}

// cutter fills message after message.
type cutter struct {
	messages []*handlerv1.WorkResponse
	filled   int // bytes in the last one
}

// room returns a message that has room for an item of so many bytes.
func (c *cutter) room(bytes int) *handlerv1.WorkResponse {
	bytes += itemOverhead
	if len(c.messages) == 0 || c.filled+bytes > fullMessage {
		c.messages = append(c.messages, new(handlerv1.WorkResponse))
		c.filled = 0
	}
	c.filled += bytes
	return c.messages[len(c.messages)-1]
}
