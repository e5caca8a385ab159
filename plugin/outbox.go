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

// How many log records wait for the orchestrator to read them, of one attempt
// and of all. Of an attempt the last ones wait, as many as the orchestrator
// keeps; beyond that, and beyond what all may have, records are dropped and
// counted.
const (
	maxLogsOfOne = 200
	maxLogs      = 1000
)

var errEnded = errors.New("the attempt has ended")

// outbox gathers what is to be sent while the last messages are on their way.
// It never makes anybody wait, and stays small when nobody reads: of what a
// handler reports again and again only the last is kept, of logs a number.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	pending letter
	// logs counts the records that wait, and those that were dropped, by
	// handle.
	logs   map[uint64]logCount
	closed bool
}

type logCount struct{ waiting, dropped int }

// notes are what an attempt has last reported of itself and is not sent yet;
// guarded by the outbox.
type notes struct {
	ended                bool
	progress, checkpoint []byte
}

func newOutbox() *outbox {
	o := &outbox{logs: make(map[uint64]logCount)}
	o.changed.L = &o.mu
	return o
}

func (o *outbox) progress(a *attempt, encoded []byte) error {
	return o.note(a, func(n *notes) { n.progress = encoded })
}

func (o *outbox) checkpoint(a *attempt, encoded []byte) error {
	return o.note(a, func(n *notes) { n.checkpoint = encoded })
}

func (o *outbox) note(a *attempt, write func(*notes)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.notes.ended || o.closed {
		return errEnded
	}
	if a.notes.progress == nil && a.notes.checkpoint == nil {
		o.pending.noted = append(o.pending.noted, a)
	}
	write(&a.notes)
	o.changed.Signal()
	return nil
}

// log sends a record, unless too many of all attempts wait already.
func (o *outbox) log(a *attempt, record *handlerv1.Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if a.notes.ended {
		record.Handle = 0 // it belongs to no attempt any more
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

// outcome ends what the attempt has to say.
func (o *outbox) outcome(a *attempt, ended *handlerv1.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a.notes.ended = true
	if o.closed {
		return
	}
	o.pending.outcomes = append(o.pending.outcomes, ended)
	o.changed.Signal()
}

// deliver sends letter after letter, and returns when the outbox is closed and
// empty. When sending fails, everything is lost from then on.
func (o *outbox) deliver(send func(*handlerv1.WorkResponse) error) error {
	for {
		// Whoever is about to add something comes first: one message is much
		// cheaper than two.
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

// collect waits for something to send and cuts it into messages. There are
// none when nothing will follow.
func (o *outbox) collect() []*handlerv1.WorkResponse {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.pending.empty() {
		if o.closed {
			return nil
		}
		o.changed.Wait()
	}
	o.tellDropped()
	collected := o.pending.messages()
	o.pending = letter{}
	return collected
}

// tellDropped adds a record for each attempt of which some were dropped.
func (o *outbox) tellDropped() {
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

// close lets deliver end once everything is sent. Nothing can be added any more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Signal()
}
