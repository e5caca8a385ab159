package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// maxLogs bounds the log records that wait for the orchestrator to read them.
// Further ones are counted and dropped.
const maxLogs = 1000

var errEnded = errors.New("the attempt has ended")

// outbox gathers what is to be sent while the last messages are on their way.
// It never makes anybody wait, and stays small when nobody reads: of what a
// handler reports again and again only the last is kept, of logs a number.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	pending letter
	dropped int
	closed  bool
}

// notes are what an attempt has last reported of itself and is not sent yet;
// guarded by the outbox.
type notes struct {
	ended                bool
	progress, checkpoint []byte
}

func newOutbox() *outbox {
	o := new(outbox)
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

// log sends a record unless too many wait already.
func (o *outbox) log(a *attempt, record *handlerv1.Log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return
	case len(o.pending.logs) >= maxLogs:
		o.dropped++
		return
	case a.notes.ended:
		record.Handle = 0 // it belongs to no attempt any more
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
	if o.dropped > 0 {
		o.pending.logs = append(o.pending.logs, &handlerv1.Log{
			Level: handlerv1.Log_LEVEL_WARN, Time: time.Now().Format(time.RFC3339Nano),
			Message: fmt.Sprintf("%d log records were dropped", o.dropped),
		})
		o.dropped = 0
	}
	collected := o.pending.messages()
	o.pending = letter{}
	return collected
}

// close lets deliver end once everything is sent. Nothing can be added any more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Signal()
}
