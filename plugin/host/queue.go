package host

import (
	"iter"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

const (
	// messageBytes is where a message is full: small enough for a cancel not
	// to wait behind megabytes, large enough for hundreds of usual starts.
	messageBytes = 1 << 20
	// startOverhead is more than everything in a start but payload,
	// checkpoint, tenant and trace takes on the wire.
	startOverhead = 1 << 10
	// sameExtension is how far apart two extensions may end to be sent as
	// one, with the earlier end.
	sameExtension = 100 * time.Millisecond
)

// queue gathers what a process is to be told while the last message is on its
// way. Its zero value is empty.
type queue struct {
	starts     []queuedStart
	cancels    []*handlerv1.Cancel
	extensions []extension
	drain      bool
}

type queuedStart struct {
	start *handlerv1.Start
	// until is when the lease is no longer proven.
	until time.Time
}

type extension struct {
	until   time.Time
	handles []uint64
}

func (q *queue) extend(handle uint64, until time.Time) {
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

// messages cuts the queue into messages. Cancels and extensions come with the
// last starts or after them, so that no process hears of an attempt's end before
// its beginning. What is promised about leases is counted from now.
func (q *queue) messages(now time.Time) iter.Seq[*handlerv1.WorkRequest] {
	return func(yield func(*handlerv1.WorkRequest) bool) {
		message, size := &handlerv1.WorkRequest{}, 0
		for _, queued := range q.starts {
			bytes := startBytes(queued.start)
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

// startBytes is at least what the start takes on the wire.
func startBytes(s *handlerv1.Start) int {
	return startOverhead + len(s.Payload) + len(s.Checkpoint) +
		len(s.JobType) + len(s.Tenant) + len(s.Traceparent) + len(s.Tracestate)
}
