package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// work is the stream.
type work struct {
	*handler
	stream  handlerv1.Handler_WorkServer
	sending sync.Mutex
}

func (h *handler) Work(stream handlerv1.Handler_WorkServer) error {
	h.attempts, h.seen = make(map[uint64]*attempt), make(map[string]bool)
	w := &work{handler: h, stream: stream}
	broken := make(chan error, 1)
	go func() {
		for {
			request, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			w.take(request)
		}
	}()
	select {
	case err := <-broken:
		return err
	case <-h.idle:
		if mode == "stream-after-drain" {
			return <-broken
		}
		return nil
	}
}

func (w *work) take(request *handlerv1.WorkRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, start := range request.GetStarts() {
		w.begin(start)
	}
	for _, handle := range request.GetExtension().GetHandles() {
		if a := w.attempts[handle]; a != nil && mode != "ignores-extensions" {
			a.lease.Reset(leaseLeft(request.GetExtension().GetLeaseMs()))
		}
	}
	for _, c := range request.GetCancels() {
		ignored := mode == "ignores-cancel" ||
			mode == "ignores-deadline" && c.GetReason() == handlerv1.Cancel_REASON_TIMEOUT
		if a := w.attempts[c.GetHandle()]; a != nil && !ignored {
			a.askToStop(c.GetReason())
		}
	}
	if request.GetDrain() {
		w.draining = true
		if mode == "drops-at-drain" {
			for _, a := range w.attempts {
				a.askToStop(handlerv1.Cancel_REASON_SHUTDOWN)
			}
		}
		w.closeIfIdle()
	}
}

func (a *attempt) askToStop(reason handlerv1.Cancel_Reason) {
	select {
	case a.stop <- reason:
	default:
	}
}

func leaseLeft(ms uint64) time.Duration { return time.Duration(ms) * time.Millisecond * 5 / 6 }

func (w *work) begin(start *handlerv1.Start) {
	a := &attempt{stop: make(chan handlerv1.Cancel_Reason, 1)}
	a.lease = time.AfterFunc(leaseLeft(start.GetLeaseMs()), func() {
		if mode != "ignores-lease" {
			a.askToStop(handlerv1.Cancel_REASON_LEASE_LOST)
		}
	})
	w.attempts[start.GetHandle()] = a
	twice := w.seen[start.GetJobId()]
	w.seen[start.GetJobId()] = true
	if mode == "forgets-duplicates" && twice {
		return
	}
	if start.GetJobType() == "SLOW" {
		w.busy++
	}
	go w.do(start, a)
}

func (w *work) do(start *handlerv1.Start, a *attempt) {
	switch start.GetJobType() {
	case "WORK":
		w.workOff(start)
	case "SLOW":
		if mode == "leaves-child" {
			leaveChild()
		}
		deadline := time.Duration(start.GetTimeoutMs()) * time.Millisecond
		if mode == "ignores-deadline" {
			deadline = time.Hour
		}
		select {
		case reason := <-a.stop:
			if reason == handlerv1.Cancel_REASON_LEASE_LOST {
				w.fail(start, "lease_lost", "the lease is lost")
				return
			}
			w.report(start, &handlerv1.Outcome{Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}})
		case <-time.After(deadline):
			w.fail(start, "timeout", "its time is up")
		}
	default:
		if mode == "dies-of-unknown-type" {
			panic("no handler for " + start.GetJobType())
		}
		w.fail(start, "unknown_type", "no handler for "+start.GetJobType())
	}
}

func (w *work) workOff(start *handlerv1.Start) {
	var payload map[string]any
	if err := json.Unmarshal(start.GetPayload(), &payload); err != nil {
		if mode == "dies-of-failure" {
			os.Exit(7)
		}
		w.fail(start, "bad_payload", err.Error())
		return
	}
	result := []byte(`"done"`)
	switch mode {
	case "fails":
		w.fail(start, "", "no luck today")
		return
	case "bad-result":
		result = []byte("{")
	case "unknown-handle":
		w.send(&handlerv1.WorkResponse{Progress: []*handlerv1.Progress{{Handle: 4711, Progress: []byte("1")}}})
	}
	outcome := &handlerv1.Outcome{Result: &handlerv1.Outcome_Succeeded{Succeeded: &handlerv1.Succeeded{Result: result}}}
	switch mode {
	case "bad-follow-up":
		outcome.GetSucceeded().FollowUps = [][]byte{[]byte(`{"jobType": "NEXT"}`), []byte(`["NEXT"]`)}
	case "many-follow-ups":
		outcome.GetSucceeded().FollowUps = slices.Repeat([][]byte{[]byte(`{"jobType": "NEXT"}`)}, 1001)
	}
	if mode == "reports-twice" {
		outcome.Handle = start.GetHandle()
		w.send(&handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{outcome, outcome}})
	}
	w.report(start, outcome)
}

func (w *work) fail(start *handlerv1.Start, code, message string) {
	w.report(start, &handlerv1.Outcome{Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{Code: code, Message: message}}})
}

// report ends the attempt.
func (w *work) report(start *handlerv1.Start, outcome *handlerv1.Outcome) {
	outcome.Handle = start.GetHandle()
	w.send(&handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{outcome}})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[start.GetHandle()].lease.Stop()
	delete(w.attempts, start.GetHandle())
	if start.GetJobType() == "SLOW" {
		w.busy--
	}
	w.closeIfIdle()
}

// closeIfIdle is called with the mutex held.
func (w *work) closeIfIdle() {
	if w.draining && len(w.attempts) == 0 {
		w.once.Do(func() { close(w.idle) })
	}
}

func (w *work) send(response *handlerv1.WorkResponse) {
	w.sending.Lock()
	defer w.sending.Unlock()
	_ = w.stream.Send(response)
}

// leaveChild starts a program in a session of its own.
func leaveChild() {
	child := exec.CommandContext(context.Background(), "sleep", "600")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		panic(err)
	}
}
