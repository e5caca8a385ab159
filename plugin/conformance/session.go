package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

const (
	// calmLease and calmTimeout are longer than any check.
	calmLease   = 10 * time.Minute
	calmTimeout = 10 * time.Minute
)

// session is a Work stream and everything that it has carried.
type session struct {
	process *process
	stream  grpc.BidiStreamingClient[handlerv1.WorkRequest, handlerv1.WorkResponse]
	hangUp  context.CancelFunc

	sending sync.Mutex
	mu      sync.Mutex
	last    uint64
	// outcomes has an entry for each start; nil while it has not ended.
	outcomes map[uint64]*handlerv1.Outcome
	// heard is closed and replaced with each message.
	heard chan struct{}
	// wrong is what the process has sent against the protocol.
	wrong []string
	// ended is closed when the stream has ended; endErr is nil if it ended in
	// order.
	ended  chan struct{}
	endErr error
}

// work opens the stream.
func (p *process) work() (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := p.handler.Work(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the Work stream cannot be opened: %w", err)
	}
	s := &session{
		process: p, stream: stream, hangUp: cancel,
		outcomes: make(map[uint64]*handlerv1.Outcome), heard: make(chan struct{}), ended: make(chan struct{}),
	}
	p.sessions = append(p.sessions, s)
	go s.receive()
	return s, nil
}

func (s *session) receive() {
	defer close(s.ended)
	for {
		message, err := s.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.endErr = err
			}
			return
		}
		s.hear(message)
	}
}

func (s *session) hear(message *handlerv1.WorkResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, progress := range message.GetProgress() {
		s.expectNote("progress", progress.GetHandle(), progress.GetProgress())
	}
	for _, checkpoint := range message.GetCheckpoints() {
		s.expectNote("a checkpoint", checkpoint.GetHandle(), checkpoint.GetCheckpoint())
	}
	for _, outcome := range message.GetOutcomes() {
		handle := outcome.GetHandle()
		switch before, started := s.outcomes[handle]; {
		case !started:
			s.complain("an outcome for handle %d, which was never started", handle)
		case before != nil:
			s.complain("a second outcome for handle %d", handle)
		case outcome.GetResult() == nil:
			s.complain("an outcome without a result for handle %d", handle)
		case len(outcome.GetSucceeded().GetResult()) > 0 && !isJSON(outcome.GetSucceeded().GetResult()):
			s.complain("a result that is not JSON: %.60q", outcome.GetSucceeded().GetResult())
		}
		if _, started := s.outcomes[handle]; started {
			s.outcomes[handle] = outcome
		}
	}
	close(s.heard)
	s.heard = make(chan struct{})
}

func (s *session) expectNote(what string, handle uint64, value []byte) {
	switch outcome, started := s.outcomes[handle]; {
	case !started:
		s.complain("%s for handle %d, which was never started", what, handle)
	case outcome != nil:
		s.complain("%s for handle %d after its outcome", what, handle)
	case !isJSON(value):
		s.complain("%s that is not JSON: %.60q", what, value)
	}
}

func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

func (s *session) complain(format string, values ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, values...))
}

// complaints are what the process has sent against the protocol so far.
func (s *session) complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.wrong...)
}

// start starts an attempt at the job, with a change if there is one.
func (s *session) start(sample Sample, change func(*handlerv1.Start)) uint64 {
	s.mu.Lock()
	s.last++
	start := &handlerv1.Start{
		Handle: s.last, JobId: fmt.Sprintf("00000000-0000-7000-8000-%012d", s.last), JobType: sample.Type, Tenant: "default",
		Payload: sample.Payload, Attempt: 1, MaxAttempts: 4, Fence: int64(s.last),
		TimeoutMs: uint64(calmTimeout.Milliseconds()), LeaseMs: uint64(calmLease.Milliseconds()),
		CreatedAt: time.Now().UTC().Format(time.RFC3339Nano),
	}
	if change != nil {
		change(start)
	}
	s.outcomes[start.GetHandle()] = nil
	s.mu.Unlock()
	s.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{start}})
	return start.GetHandle()
}

// send ignores the end of the stream: await notices it.
func (s *session) send(request *handlerv1.WorkRequest) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.Send(request)
}

func (s *session) cancel(handle uint64, reason handlerv1.Cancel_Reason) {
	s.send(&handlerv1.WorkRequest{Cancels: []*handlerv1.Cancel{{Handle: handle, Reason: reason}}})
}

func (s *session) extend(handle uint64, lease time.Duration) {
	s.send(&handlerv1.WorkRequest{Extension: &handlerv1.Extension{Handles: []uint64{handle}, LeaseMs: uint64(lease.Milliseconds())}})
}

// await waits for the outcome of an attempt. It returns nil if the time is over or
// the stream has ended.
func (s *session) await(handle uint64, within time.Duration) *handlerv1.Outcome {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		s.mu.Lock()
		outcome, heard := s.outcomes[handle], s.heard
		s.mu.Unlock()
		if outcome != nil {
			return outcome
		}
		select {
		case <-heard:
		case <-s.ended:
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.outcomes[handle]
		case <-late.C:
			return nil
		}
	}
}

// ends reports whether the stream ends in time.
func (s *session) ends(limit time.Duration) bool { return within(s.ended, limit) }

// broken says how the stream has ended; empty while it has not.
func (s *session) broken() string {
	select {
	case <-s.ended:
	default:
		return ""
	}
	if p := s.process; p.leaves(pipeTail) {
		return fmt.Sprintf("the process ended with %s%s", p.state, p.out.said())
	}
	return fmt.Sprintf("the stream ended: %v", s.endErr)
}

// describe is an outcome in a few words.
func describe(outcome *handlerv1.Outcome) string {
	switch result := outcome.GetResult().(type) {
	case *handlerv1.Outcome_Succeeded:
		return "succeeded"
	case *handlerv1.Outcome_Failed:
		text := "failed"
		if result.Failed.GetPermanent() {
			text = "failed permanently"
		}
		if result.Failed.GetCode() != "" {
			text += fmt.Sprintf(" (%.100s)", result.Failed.GetCode())
		}
		return fmt.Sprintf("%s: %.200s", text, result.Failed.GetMessage())
	case *handlerv1.Outcome_Canceled:
		return "canceled"
	case *handlerv1.Outcome_Snoozed:
		return "snoozed"
	}
	return "an outcome without a result"
}
