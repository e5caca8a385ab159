package message

import (
	"iter"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// messageBytes is when a message is full. It is small enough that a cancel does not
	// wait behind megabytes, and large enough for hundreds of usual starts.
	messageBytes = 1 << 20
	// sameExtension bounds how far apart two extensions may end that are sent as one,
	// with the earlier end.
	sameExtension = 100 * time.Millisecond
)

// Queue collects what to send to a process while the last message is being sent. Its zero
// value is empty.
type Queue struct {
	starts     starts
	cancels    []*handlerv1.Cancel
	extensions []extension
	drain      bool
}

type extension struct {
	until   time.Time
	handles []uint64
}

// Start queues the start of an attempt whose lease lasts at least until then. Payload and checkpoint
// must not be changed until it is sent.
func (q *Queue) Start(handle uint64, a *job.Assignment, until time.Time) {
	q.starts.add(handle, a, until)
}

// Cancel queues a request to stop an attempt.
func (q *Queue) Cancel(handle uint64, reason job.CancelReason) {
	q.cancels = append(q.cancels, &handlerv1.Cancel{Handle: handle, Reason: wireReason(reason)})
}

// Drain queues the message that no starts will follow.
func (q *Queue) Drain() { q.drain = true }

// Extend queues the message that the lease of an attempt lasts at least until then.
func (q *Queue) Extend(handle uint64, until time.Time) {
	if n := len(q.extensions); n > 0 {
		last := &q.extensions[n-1]
		if until.Sub(last.until).Abs() <= sameExtension {
			last.handles = append(last.handles, handle)
			if until.Before(last.until) {
				last.until = until
			}
			return
		}
	}
	q.extensions = append(q.extensions, extension{until: until, handles: []uint64{handle}})
}

// Request is a WorkRequest in wire format. Send it on a stream with Codec.
type Request []byte

// Messages divides the queue into messages. Cancels and extensions come with the last
// starts or after them, so that none arrives before the start of its attempt. Leases
// are sent as the time that is left from now.
func (q *Queue) Messages(now time.Time) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		message, more := q.starts.messages(now, yield)
		if !more {
			return
		}
		message = appendMessage(message, &handlerv1.WorkRequest{Cancels: q.cancels, Drain: q.drain})
		extended := false
		for _, e := range q.extensions {
			left := e.until.Sub(now)
			if left < time.Millisecond {
				continue
			}
			if extended {
				if !yield(message) {
					return
				}
				message = nil
			}
			extended = true
			message = appendMessage(message, &handlerv1.WorkRequest{
				Extension: &handlerv1.Extension{Handles: e.handles, LeaseMs: toMilliseconds(left)},
			})
		}
		if len(message) > 0 {
			yield(message)
		}
	}
}

// Emptied returns the queue without its content, to be filled again. It keeps the memory of its starts,
// unless their texts took more than a message.
func (q *Queue) Emptied() Queue {
	clear(q.starts.all)
	kept := starts{all: q.starts.all[:0], texts: q.starts.texts[:0], created: q.starts.created, lastCreated: q.starts.lastCreated}
	if cap(kept.texts) > messageBytes {
		kept = starts{}
	}
	return Queue{starts: kept}
}

func wireReason(reason job.CancelReason) handlerv1.Cancel_Reason {
	switch reason {
	case job.CancelRequested:
		return handlerv1.Cancel_REASON_CANCELED
	case job.CancelTimeout:
		return handlerv1.Cancel_REASON_TIMEOUT
	case job.CancelLeaseLost:
		return handlerv1.Cancel_REASON_LEASE_LOST
	case job.CancelShutdown:
		return handlerv1.Cancel_REASON_SHUTDOWN
	default: // rejected by the host
		return handlerv1.Cancel_REASON_CANCELED
	}
}
