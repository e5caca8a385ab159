package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

const (
	// messageFill is the size at which a gathered message is full, in bytes.
	messageFill = 1 << 20
	// maxLogs bounds the log records that wait for the orchestrator to read
	// them. Further ones are counted and dropped.
	maxLogs = 1000
)

type stream = grpc.BidiStreamingServer[handlerv1.WorkRequest, handlerv1.WorkResponse]

// session is one Work stream: all attempts of the process.
type session struct {
	handlers map[string]Handler
	stream   stream
	// abandon ends the process; tests replace it.
	abandon func(why string)
	running sync.WaitGroup

	mu       sync.Mutex
	attempts map[uint64]*attempt
	pending  []*handlerv1.WorkResponse
	filled   int // bytes in the last pending message
	logs     int // log records in all pending messages
	dropped  int
	queued   chan struct{}
}

func newSession(handlers map[string]Handler, s stream, abandon func(string)) *session {
	return &session{
		handlers: handlers, stream: s, abandon: abandon,
		attempts: make(map[uint64]*attempt), queued: make(chan struct{}, 1),
	}
}

// work receives until the orchestrator drains the process or is gone, and
// returns when every attempt has ended and is reported. drained is true in the
// former case.
func (s *session) work() (drained bool, err error) {
	ctx, leave := context.WithCancel(s.stream.Context())
	defer leave()
	sent := make(chan error, 1)
	flush, flushed := context.WithCancel(context.Background())
	defer flushed()
	go func() { sent <- s.sendLoop(flush) }()

	drained, err = s.receive(ctx)
	if !drained {
		// Nobody is there to hear of outcomes: the orchestrator takes every
		// attempt as crashed, and so must end all of them here.
		leave()
		s.stopAll()
	}
	s.running.Wait()
	flushed()
	return drained, errors.Join(err, <-sent)
}

func (s *session) receive(ctx context.Context) (drained bool, err error) {
	for {
		request, err := s.stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return false, err
		}
		for _, start := range request.GetStarts() {
			s.begin(ctx, start)
		}
		if extension := request.GetExtension(); extension != nil {
			for _, handle := range extension.GetHandles() {
				if a := s.find(handle); a != nil {
					a.extend(fromMillis(extension.GetLeaseMs()))
				}
			}
		}
		for _, c := range request.GetCancels() {
			if a := s.find(c.GetHandle()); a != nil {
				a.stop(cause(c.GetReason()))
			}
		}
		if request.GetDrain() {
			return true, nil
		}
	}
}

func cause(reason handlerv1.Cancel_Reason) error {
	switch reason {
	case handlerv1.Cancel_REASON_TIMEOUT:
		return ErrTimeout
	case handlerv1.Cancel_REASON_LEASE_LOST:
		return ErrLeaseLost
	case handlerv1.Cancel_REASON_SHUTDOWN:
		return ErrShutdown
	case handlerv1.Cancel_REASON_CANCELED, handlerv1.Cancel_REASON_UNSPECIFIED:
	}
	return ErrCanceled
}

func (s *session) begin(ctx context.Context, start *handlerv1.Start) {
	ctx, end := context.WithCancelCause(ctx)
	ctx, release := context.WithTimeoutCause(ctx, fromMillis(start.GetTimeoutMs()), ErrTimeout)
	a := &attempt{start: start, session: s, end: end}
	ctx = withAttempt(ctx, a)
	s.mu.Lock()
	s.attempts[start.GetHandle()] = a
	s.mu.Unlock()
	a.extend(fromMillis(start.GetLeaseMs()))
	s.running.Go(func() {
		defer release()
		defer end(nil)
		h, known := s.handlers[start.GetJobType()]
		if !known {
			h.run = unknownType
		}
		a.perform(ctx, h)
	})
}

func (s *session) find(handle uint64) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts[handle]
}

func (s *session) stopAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.attempts {
		a.end(ErrLeaseLost)
	}
}

// finish reports an attempt's outcome; nothing is sent for it afterwards.
func (s *session) finish(a *attempt, o *handlerv1.Outcome) {
	o.Handle = a.start.GetHandle()
	s.mu.Lock()
	delete(s.attempts, o.GetHandle())
	s.mu.Unlock()
	s.send(func(m *handlerv1.WorkResponse) int {
		m.Outcomes = append(m.Outcomes, o)
		return len(o.GetSucceeded().GetResult()) + len(o.GetFailed().GetMessage()) + len(o.GetFailed().GetStack())
	})
}

// send adds something to the message that is being gathered; add returns its
// size in bytes. It never waits. Within a message the orchestrator takes
// progress, checkpoints and logs before outcomes, and an attempt sends nothing
// after its outcome, so the order of each attempt is kept.
func (s *session) send(add func(*handlerv1.WorkResponse) int) {
	s.mu.Lock()
	if len(s.pending) == 0 || s.filled >= messageFill {
		s.pending = append(s.pending, new(handlerv1.WorkResponse))
		s.filled = 0
	}
	s.filled += add(s.pending[len(s.pending)-1]) + 1
	s.mu.Unlock()
	select {
	case s.queued <- struct{}{}:
	default:
	}
}

// log sends a record unless too many wait already.
func (s *session) log(record *handlerv1.Log) {
	s.mu.Lock()
	full := s.logs >= maxLogs
	if full {
		s.dropped++
	} else {
		s.logs++
	}
	dropped := 0
	if !full && s.dropped > 0 {
		dropped, s.dropped = s.dropped, 0
	}
	s.mu.Unlock()
	if full {
		return
	}
	s.send(func(m *handlerv1.WorkResponse) int {
		if dropped > 0 {
			m.Logs = append(m.Logs, &handlerv1.Log{
				Level: handlerv1.Log_LEVEL_WARN, Time: time.Now().Format(time.RFC3339Nano),
				Message: fmt.Sprintf("%d log records were dropped", dropped),
			})
		}
		m.Logs = append(m.Logs, record)
		return len(record.GetMessage()) + len(record.GetAttributes())
	})
}

// sendLoop sends what has gathered, one message at a time, until the context
// ends, and then the rest.
func (s *session) sendLoop(ctx context.Context) error {
	for {
		for m := s.next(); m != nil; m = s.next() {
			if err := s.stream.Send(m); err != nil {
				return err
			}
		}
		select {
		case <-s.queued:
		case <-ctx.Done():
			for m := s.next(); m != nil; m = s.next() {
				if err := s.stream.Send(m); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func (s *session) next() *handlerv1.WorkResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		s.pending = nil
		return nil
	}
	m := s.pending[0]
	s.pending = s.pending[1:]
	s.logs -= len(m.GetLogs())
	if len(s.pending) == 0 {
		s.logs = 0
	}
	return m
}
