package plugin

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

const (
	// fullMessage is the size, in bytes, from which on a gathered message
	// takes nothing more.
	fullMessage = 1 << 20
	// itemOverhead is more than an item takes on the wire beside its texts.
	itemOverhead = 128
	// maxLogs bounds the log records that wait for the orchestrator to read
	// them. Further ones are counted and dropped.
	maxLogs = 1000
)

var errEnded = errors.New("the attempt has ended")

// outbox gathers what is to be sent while the last message is on its way. It
// never makes anybody wait, and what a handler reports again and again takes
// the place of what it reported before.
//
// Within a message the orchestrator reads logs, progress and checkpoints
// before outcomes, and nothing of an attempt is added after its outcome; so
// the order of each attempt is kept.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	pending []*handlerv1.WorkResponse
	filled  int // bytes in the last pending message
	logs    int // records in all pending messages
	dropped int
	closed  bool
}

// notes are what an attempt has reported of itself, in the message that takes
// it; guarded by the outbox.
type notes struct {
	ended      bool
	in         *handlerv1.WorkResponse
	progress   *handlerv1.Progress
	checkpoint *handlerv1.Checkpoint
}

func newOutbox() *outbox {
	o := new(outbox)
	o.changed.L = &o.mu
	return o
}

// open returns a message that has room for so many bytes.
func (o *outbox) open(bytes int) *handlerv1.WorkResponse {
	bytes += itemOverhead
	if len(o.pending) == 0 || o.filled > 0 && o.filled+bytes > fullMessage {
		o.pending = append(o.pending, new(handlerv1.WorkResponse))
		o.filled = 0
	}
	o.filled += bytes
	o.changed.Signal()
	return o.pending[len(o.pending)-1]
}

// replace makes room for one value in the place of another in the last message;
// it reports false when there is none.
func (o *outbox) replace(a *attempt, oldBytes, newBytes int) bool {
	if len(o.pending) == 0 || a.notes.in != o.pending[len(o.pending)-1] ||
		oldBytes == 0 || o.filled-oldBytes+newBytes > maxValue {
		return false
	}
	o.filled += newBytes - oldBytes
	return true
}

// note is a message for one of the attempt's notes.
func (o *outbox) note(a *attempt, bytes int) *handlerv1.WorkResponse {
	m := o.open(bytes)
	if a.notes.in != m {
		a.notes = notes{in: m}
	}
	return m
}

func (o *outbox) progress(a *attempt, encoded []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.notes.ended || o.closed {
		return errEnded
	}
	if o.replace(a, len(a.notes.progress.GetProgress()), len(encoded)) {
		a.notes.progress.Progress = encoded
		return nil
	}
	m := o.note(a, len(encoded))
	a.notes.progress = &handlerv1.Progress{Handle: a.start.GetHandle(), Progress: encoded}
	m.Progress = append(m.Progress, a.notes.progress)
	return nil
}

func (o *outbox) checkpoint(a *attempt, encoded []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.notes.ended || o.closed {
		return errEnded
	}
	if o.replace(a, len(a.notes.checkpoint.GetCheckpoint()), len(encoded)) {
		a.notes.checkpoint.Checkpoint = encoded
		return nil
	}
	m := o.note(a, len(encoded))
	a.notes.checkpoint = &handlerv1.Checkpoint{Handle: a.start.GetHandle(), Checkpoint: encoded}
	m.Checkpoints = append(m.Checkpoints, a.notes.checkpoint)
	return nil
}

// log sends a record unless too many wait already.
func (o *outbox) log(a *attempt, record *handlerv1.Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.logs >= maxLogs {
		o.dropped++
		return
	}
	if a.notes.ended {
		record.Handle = 0 // it belongs to no attempt any more
	}
	o.logs++
	m := o.open(len(record.GetMessage()) + len(record.GetAttributes()))
	m.Logs = append(m.Logs, record)
}

// outcome ends what the attempt has to say.
func (o *outbox) outcome(a *attempt, ended *handlerv1.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a.notes = notes{ended: true}
	if o.closed {
		return
	}
	failed := ended.GetFailed()
	m := o.open(len(ended.GetSucceeded().GetResult()) +
		len(failed.GetCode()) + len(failed.GetMessage()) + len(failed.GetStack()))
	m.Outcomes = append(m.Outcomes, ended)
}

// deliver sends message after message, and returns when the outbox is closed
// and empty. When sending fails, everything is lost from then on.
func (o *outbox) deliver(send func(*handlerv1.WorkResponse) error) error {
	for {
		m := o.next()
		if m == nil {
			return nil
		}
		if err := send(m); err != nil {
			o.mu.Lock()
			o.closed, o.pending = true, nil
			o.mu.Unlock()
			return err
		}
	}
}

// next waits for a message. It is nil when there will be none.
func (o *outbox) next() *handlerv1.WorkResponse {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.pending) == 0 {
		if o.closed {
			return nil
		}
		o.changed.Wait()
	}
	m := o.pending[0]
	o.pending = o.pending[1:]
	o.logs -= len(m.GetLogs())
	if o.dropped > 0 {
		m.Logs = append(m.Logs, &handlerv1.Log{
			Level: handlerv1.Log_LEVEL_WARN, Time: time.Now().Format(time.RFC3339Nano),
			Message: fmt.Sprintf("%d log records were dropped", o.dropped),
		})
		o.dropped = 0
	}
	return m
}

// close lets deliver end once everything is sent. Nothing can be added any more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Signal()
}
