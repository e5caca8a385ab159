package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// How many log records wait until the orchestrator reads them, of one attempt and
// of all. An attempt keeps its latest, as many as the orchestrator stores. The
// others are dropped and counted.
const (
	maxLogsOfOne = 200
	maxLogs      = 1000
)

const (
	// fullMessage is the size in bytes at which a message gets no more items. A
	// larger item gets a message of its own.
	fullMessage = 1 << 20
	// itemOverhead is an upper bound of what an item needs on the wire in addition to
	// its texts.
	itemOverhead = 128
)

var errEnded = errors.New("the attempt has ended")

// outbox collects what to send while earlier messages are on their way. It never
// makes anyone wait, and it stays small when nobody reads: it keeps only the last
// progress and checkpoint of an attempt, and a number of log records.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	pending envelope
	// logs counts the records that wait and that were dropped, by handle.
	logs   map[uint64]logCount
	closed bool
}

type logCount struct{ waiting, dropped int }

// unsent is what an attempt has reported last and what is not sent yet. The outbox's
// mutex guards it.
type unsent struct {
	ended                bool
	progress, checkpoint []byte
}

func newOutbox() *outbox {
	o := &outbox{logs: make(map[uint64]logCount)}
	o.changed.L = &o.mu
	return o
}

func (o *outbox) progress(a *attempt, encoded []byte) error {
	return o.report(a, func(u *unsent) { u.progress = encoded })
}

func (o *outbox) checkpoint(a *attempt, encoded []byte) error {
	return o.report(a, func(u *unsent) { u.checkpoint = encoded })
}

func (o *outbox) report(a *attempt, set func(*unsent)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.unsent.ended || o.closed {
		return errEnded
	}
	if a.unsent.progress == nil && a.unsent.checkpoint == nil {
		o.pending.reporting = append(o.pending.reporting, a)
	}
	set(&a.unsent)
	o.changed.Signal()
	return nil
}

// log adds a record. It may drop this one or an older one.
func (o *outbox) log(a *attempt, record *handlerv1.Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if a.unsent.ended {
		record.Handle = 0 // it no longer belongs to an attempt
	}
	of := o.logs[record.GetHandle()]
	defer func() { o.logs[record.GetHandle()] = of }()
	switch {
	case of.waiting >= maxLogsOfOne:
		oldest := slices.IndexFunc(o.pending.logs, func(l *handlerv1.Log) bool { return l.GetHandle() == record.GetHandle() })
		o.pending.logs = slices.Delete(o.pending.logs, oldest, oldest+1)
		of.dropped++
	case len(o.pending.logs) >= maxLogs:
		of.dropped++
		return
	default:
		of.waiting++
	}
	o.pending.logs = append(o.pending.logs, record)
	o.changed.Signal()
}

// outcome adds the attempt's last item.
func (o *outbox) outcome(a *attempt, ended *handlerv1.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a.unsent.ended = true
	if o.closed {
		return
	}
	o.pending.outcomes = append(o.pending.outcomes, ended)
	o.changed.Signal()
}

// deliver sends until the outbox is closed and empty. When sending fails, the
// outbox accepts nothing more.
func (o *outbox) deliver(send func(*handlerv1.WorkResponse) error) error {
	for {
		// Let others add to this message first: one is much cheaper than two.
		runtime.Gosched()
		messages := o.collect()
		if messages == nil {
			return nil
		}
		for _, message := range messages {
			if err := send(message); err != nil {
				o.close()
				return err
			}
		}
	}
}

// collect waits for something to send and returns it as messages; none when the
// outbox is closed and empty.
func (o *outbox) collect() []*handlerv1.WorkResponse {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.pending.empty() {
		if o.closed {
			return nil
		}
		o.changed.Wait()
	}
	o.countDropped()
	collected := o.pending.messages()
	o.pending = envelope{}
	return collected
}

// countDropped adds a record for each attempt of which some were dropped.
func (o *outbox) countDropped() {
	for handle, of := range o.logs {
		if of.dropped > 0 {
			o.pending.logs = append(o.pending.logs, &handlerv1.Log{
				Handle: handle, Level: handlerv1.Log_LEVEL_WARN, Time: time.Now().Format(time.RFC3339Nano),
				Message: fmt.Sprintf("%d log records were dropped", of.dropped), Dropped: uint64(of.dropped),
			})
		}
	}
	clear(o.logs)
}

// close ends deliver once everything is sent. Nothing can be added after it.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Signal()
}

// envelope is what the outbox sends at once.
type envelope struct {
	logs []*handlerv1.Log
	// reporting are the attempts with progress or checkpoints to send, in the
	// order of their first.
	reporting []*attempt
	outcomes  []*handlerv1.Outcome
}

func (e *envelope) empty() bool { return len(e.logs)+len(e.reporting)+len(e.outcomes) == 0 }

// messages divides the envelope into messages. Outcomes come last, so that nothing
// of an attempt follows its end. It takes what the attempts report: the outbox's
// mutex is held.
func (e *envelope) messages() []*handlerv1.WorkResponse {
	var p packer
	for _, record := range e.logs {
		m := p.room(len(record.GetMessage()) + len(record.GetAttributes()))
		m.Logs = append(m.Logs, record)
	}
	for _, a := range e.reporting {
		handle := a.start.GetHandle()
		if progress := a.unsent.progress; progress != nil {
			m := p.room(len(progress))
			m.Progress = append(m.Progress, &handlerv1.Progress{Handle: handle, Progress: progress})
		}
		if checkpoint := a.unsent.checkpoint; checkpoint != nil {
			m := p.room(len(checkpoint))
			m.Checkpoints = append(m.Checkpoints, &handlerv1.Checkpoint{Handle: handle, Checkpoint: checkpoint})
		}
		a.unsent.progress, a.unsent.checkpoint = nil, nil
	}
	for _, ended := range e.outcomes {
		failed := ended.GetFailed()
		m := p.room(len(ended.GetSucceeded().GetResult()) + sizeOf(ended.GetSucceeded().GetFollowUps()) +
			len(failed.GetCode()) + len(failed.GetMessage()) + len(failed.GetStack()))
		m.Outcomes = append(m.Outcomes, ended)
	}
	return p.messages
}

// sizeOf is an upper bound of the values' size on the wire.
func sizeOf(values [][]byte) (bytes int) {
	const overhead = 8 // tag and length
	for _, one := range values {
		bytes += len(one) + overhead
	}
	return bytes
}

// packer fills message after message.
type packer struct {
	messages []*handlerv1.WorkResponse
	filled   int // bytes in the last one
}

// room returns a message that has room for an item of so many bytes.
func (p *packer) room(bytes int) *handlerv1.WorkResponse {
	bytes += itemOverhead
	if len(p.messages) == 0 || p.filled+bytes > fullMessage {
		p.messages = append(p.messages, new(handlerv1.WorkResponse))
		p.filled = 0
	}
	p.filled += bytes
	return p.messages[len(p.messages)-1]
}
