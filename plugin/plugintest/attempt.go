package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// killGrace is how long a handler may take to return after it was asked to stop: an
// orchestrator's default.
const killGrace = 5 * time.Second

// leaseShare is the part of a lease after which it is extended.
const leaseShare = 3

// Attempt is a running attempt. You may call its methods from any goroutine. They do
// nothing after its end.
type Attempt struct {
	harness *Harness
	start   *handlerv1.Start
	begun   time.Time

	mu     sync.Mutex
	told   error
	result Result
	// noted is closed and replaced with each progress and checkpoint.
	noted chan struct{}
	// silent is closed when the lease is no longer extended, done when the result
	// is complete, returned when the handler's function has returned.
	silent   chan struct{}
	done     chan struct{}
	returned chan struct{}
	// kill ends the attempt if the handler does not.
	kill *time.Timer
}

func newAttempt(h *Harness, start *handlerv1.Start) *Attempt {
	a := &Attempt{
		harness: h, start: start, begun: time.Now(),
		noted: make(chan struct{}), silent: make(chan struct{}),
		done: make(chan struct{}), returned: make(chan struct{}),
	}
	a.kill = time.AfterFunc(fromMillis(start.GetTimeoutMs())+killGrace, a.killed)
	return a
}

// Stop asks the handler to stop, as an orchestrator does. The cause of the handler's
// context is plugin.ErrCanceled, plugin.ErrTimeout, plugin.ErrShutdown or
// plugin.ErrLeaseLost. Only the first call counts.
func (a *Attempt) Stop(cause error) {
	reasons := map[error]handlerv1.Cancel_Reason{
		plugin.ErrCanceled:  handlerv1.Cancel_REASON_CANCELED,
		plugin.ErrTimeout:   handlerv1.Cancel_REASON_TIMEOUT,
		plugin.ErrShutdown:  handlerv1.Cancel_REASON_SHUTDOWN,
		plugin.ErrLeaseLost: handlerv1.Cancel_REASON_LEASE_LOST,
	}
	reason, known := reasons[cause]
	if !known {
		a.harness.t.Errorf("plugintest: Stop(%v): the cause is not one of package plugin's", cause)
		return
	}
	a.mu.Lock()
	late := a.told != nil || a.over()
	if !late {
		a.told = cause
		a.kill.Reset(killGrace)
	}
	a.mu.Unlock()
	if !late {
		a.harness.send(&handlerv1.WorkRequest{Cancels: []*handlerv1.Cancel{{Handle: a.start.GetHandle(), Reason: reason}}})
	}
}

// FallSilent stops extending the lease, as if the orchestrator were cut off. The
// handler's context ends with plugin.ErrLeaseLost shortly before the lease does.
func (a *Attempt) FallSilent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.silent:
	default:
		close(a.silent)
	}
}

// Progress waits until the handler has reported progress, and returns the last value.
// It returns nil if the attempt or the context ends before.
func (a *Attempt) Progress(ctx context.Context) json.RawMessage {
	return a.note(ctx, func(r *Result) json.RawMessage { return r.Progress })
}

// Checkpoint waits in the same way until the handler has saved a checkpoint.
func (a *Attempt) Checkpoint(ctx context.Context) json.RawMessage {
	return a.note(ctx, func(r *Result) json.RawMessage { return r.Checkpoint })
}

func (a *Attempt) note(ctx context.Context, read func(*Result) json.RawMessage) json.RawMessage {
	for {
		a.mu.Lock()
		value, noted, over := slices.Clone(read(&a.result)), a.noted, a.over()
		a.mu.Unlock()
		if value != nil || over {
			return value
		}
		select {
		case <-noted:
		case <-a.done:
		case <-ctx.Done():
			return nil
		}
	}
}

// Done is closed when the attempt has ended.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Wait waits for the attempt's end. The handler's timeout bounds it.
func (a *Attempt) Wait() Result {
	<-a.done
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.result
}

// keep extends the lease until the handler has returned or FallSilent was called. It
// continues when the handler should have returned, because a process would still run.
func (a *Attempt) keep() {
	ticks := time.NewTicker(max(fromMillis(a.start.GetLeaseMs())/leaseShare, time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			a.harness.send(&handlerv1.WorkRequest{Extension: &handlerv1.Extension{
				Handles: []uint64{a.start.GetHandle()}, LeaseMs: a.start.GetLeaseMs(),
			}})
		case <-a.silent:
			return
		case <-a.returned:
			return
		case <-a.harness.ended:
			return
		}
	}
}

// hear records what the handler reports.
func (a *Attempt) hear(write func(*Result)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over() {
		return
	}
	write(&a.result)
	close(a.noted)
	a.noted = make(chan struct{})
}

// end completes the result. Only the first end counts.
func (a *Attempt) end(write func(r *Result, told error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over() {
		return
	}
	write(&a.result, a.told)
	a.result.Took = time.Since(a.begun)
	a.kill.Stop()
	close(a.done)
}

func (a *Attempt) killed() {
	a.crash(fmt.Sprintf("the handler has not returned within %s after it should have stopped; an orchestrator kills its process", killGrace))
}

func (a *Attempt) crash(why string) {
	a.end(func(r *Result, _ error) { r.Outcome, r.Message = Crashed, why })
}

// over is called with the mutex held.
func (a *Attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}
