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
	// startOverhead is more than the bytes on the wire of those fields of a start that
	// StartBytes does not count.
	startOverhead = 1 << 10
	// sameExtension bounds how far apart two extensions may end that are sent as one,
	// with the earlier end.
	sameExtension = 100 * time.Millisecond
)

// Queue collects what to send to a process while the last message is being sent. Its zero
// value is empty.
type Queue struct {
	starts     []queuedStart
	cancels    []*handlerv1.Cancel
	extensions []extension
	drain      bool
}

type queuedStart struct {
	start *handlerv1.Start
	// until is how long the lease is known to last.
	until time.Time
}

type extension struct {
	until   time.Time
	handles []uint64
}

// Start queues the start of an attempt whose lease lasts at least until then.
func (q *Queue) Start(start *handlerv1.Start, until time.Time) {
	q.starts = append(q.starts, queuedStart{start: start, until: until})
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

// Messages divides the queue into messages. Cancels and extensions come with the last
// starts or after them, so that none arrives before the start of its attempt. Leases
// are sent as the time that is left from now.
func (q *Queue) Messages(now time.Time) iter.Seq[*handlerv1.WorkRequest] {
	return func(yield func(*handlerv1.WorkRequest) bool) {
		message, size := &handlerv1.WorkRequest{Starts: make([]*handlerv1.Start, 0, len(q.starts))}, 0
		for _, queued := range q.starts {
			bytes := StartBytes(queued.start)
			if size > 0 && size+bytes > messageBytes {
				if !yield(message) {
					return
				}
				message, size = &handlerv1.WorkRequest{}, 0
			}
			queued.start.LeaseMs = max(toMilliseconds(queued.until.Sub(now)), 1)
			message.Starts = append(message.Starts, queued.start)
			size += bytes
		}
		message.Cancels = q.cancels
		message.Drain = q.drain
		for _, e := range q.extensions {
			left := e.until.Sub(now)
			if left < time.Millisecond {
				continue
			}
			if message.Extension != nil {
				if !yield(message) {
					return
				}
				message = &handlerv1.WorkRequest{}
			}
			message.Extension = &handlerv1.Extension{Handles: e.handles, LeaseMs: toMilliseconds(left)}
		}
		if len(message.Starts) > 0 || len(message.Cancels) > 0 || message.Extension != nil || message.Drain {
			yield(message)
		}
	}
}

// StartBytes is an upper bound for the size of the start on the wire.
func StartBytes(s *handlerv1.Start) int {
	bytes := startOverhead + len(s.Payload) + len(s.Checkpoint) +
		len(s.JobType) + len(s.Tenant) + len(s.Traceparent) + len(s.Tracestate) + len(s.Baggage)
	for _, p := range s.Predecessors {
		bytes += predecessorOverhead + len(p.Name) + len(p.JobId) + len(p.Result)
	}
	return bytes
}

// predecessorOverhead is more than what surrounds the values of a predecessor on the wire.
const predecessorOverhead = 32

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
