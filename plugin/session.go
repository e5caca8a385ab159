package plugin

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

type stream = grpc.BidiStreamingServer[handlerv1.WorkRequest, handlerv1.WorkResponse]

// session is one Work stream with all attempts on it.
type session struct {
	handlers map[string]Handler
	// exit ends the process at once.
	exit   func(why string)
	out    *outbox
	limits valueLimits
	times  times
	// ctx is the parent of every attempt's context.
	ctx  context.Context
	lose context.CancelCauseFunc

	running  sync.WaitGroup
	pool     *pool
	mu       sync.Mutex
	attempts map[uint64]*attempt
	leases   watch
	draining bool
	// idle is closed when no attempt is left and none will come.
	idle chan struct{}
}

func newSession(handlers map[string]Handler, limits valueLimits, exit func(string)) *session {
	ctx, lose := context.WithCancelCause(context.Background())
	s := &session{
		handlers: handlers, limits: limits, exit: exit, out: newOutbox(), ctx: ctx, lose: lose,
		attempts: make(map[uint64]*attempt), idle: make(chan struct{}), pool: newPool(),
	}
	s.leases.check = s.checkLeases
	return s
}

// work serves the stream until it is drained: every attempt has ended and
// everything is sent. If the stream breaks, outcomes can no longer be sent and the
// orchestrator counts every attempt as crashed. Their contexts end with
// ErrLeaseLost, and work returns when they have ended.
func (s *session) work(stream stream) error {
	sent := make(chan error, 1)
	go func() { sent <- s.out.deliver(stream.Send) }()
	broken := make(chan error, 1)
	go func() {
		if err := s.receive(stream); err != nil {
			broken <- err
		}
	}()
	var err error
	select {
	case err = <-broken:
	case <-s.idle:
	}
	s.lose(ErrLeaseLost)
	s.pool.close()
	s.running.Wait()
	s.leases.stop()
	s.out.close()
	return errors.Join(err, <-sent)
}

// receive returns nil when the orchestrator has closed its end, and an error when
// the stream is broken.
func (s *session) receive(stream stream) error {
	for {
		request, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			s.drain()
			return nil
		case err != nil:
			return err
		}
		s.take(request)
	}
}

func (s *session) take(request *handlerv1.WorkRequest) {
	for _, start := range request.GetStarts() {
		s.begin(start)
	}
	if extension := request.GetExtension(); extension != nil {
		s.extend(extension.GetHandles(), fromMillis(extension.GetLeaseMs()))
	}
	for _, c := range request.GetCancels() {
		if a := s.find(c.GetHandle()); a != nil {
			a.stop(cause(c.GetReason()))
		}
	}
	if request.GetDrain() {
		s.drain()
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

func (s *session) begin(start *handlerv1.Start) {
	now := time.Now()
	a := &attempt{start: start, session: s, handler: unknownType}
	if h, known := s.handlers[start.GetJobType()]; known {
		a.handler = h.run
	}
	a.lifetime.of, a.lifetime.deadline = a, now.Add(fromMillis(start.GetTimeoutMs()))

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isIdle() { // a start after the drain
		return
	}
	s.attempts[start.GetHandle()] = a
	s.extendLocked(a, now, fromMillis(start.GetLeaseMs()))
	s.pool.run(&s.running, a)
}

func (s *session) find(handle uint64) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts[handle]
}

// finish reports an attempt's outcome. From then on, it needs no lease.
func (s *session) finish(a *attempt, ended *handlerv1.Outcome) {
	ended.Handle = a.start.GetHandle()
	s.mu.Lock()
	delete(s.attempts, ended.GetHandle())
	s.closeIfIdle()
	s.mu.Unlock()
	s.out.outcome(a, ended) // which is open until the goroutines of all attempts have ended
}

// drain: no more starts will come.
func (s *session) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.closeIfIdle()
}

// closeIfIdle is called with the mutex held.
func (s *session) closeIfIdle() {
	if s.draining && len(s.attempts) == 0 && !s.isIdle() {
		close(s.idle)
	}
}

func (s *session) isIdle() bool {
	select {
	case <-s.idle:
		return true
	default:
		return false
	}
}
