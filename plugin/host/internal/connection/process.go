// Package connection is the orchestrator's connection to one plugin process: it launches
// the process, exchanges messages with it, checks its health, and reports how the
// attempts in it end.
//
// Launch starts a process, and Serve stays with it until it is gone. In between, Begin
// gives it attempts. The Owner decides what the end of the process or of an attempt
// means. Each attempt that was begun is reported as finished exactly once.
package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var (
	// ErrKilled means that the process was killed to stop one of its attempts.
	ErrKilled = errors.New("killed on request")
	// ErrClosing means that the process was killed because its owner shuts down.
	ErrClosing = errors.New("killed at shutdown")
)

// ReapTimeout is how long to wait for a killed process. Only a process that the
// kernel cannot interrupt takes that long, and it never runs its own code again.
const ReapTimeout = 10 * time.Second

// Spec says what to launch and how to treat it.
type Spec struct {
	// Plugin is the plugin's name.
	Plugin string
	Child  osprocess.Spec
	// SocketDir is the directory that gets a directory for the process's socket.
	SocketDir string
	// Isolated says that the process runs one attempt, after which it drains.
	Isolated bool
	// StartTimeout bounds the launch, from fork to manifest.
	StartTimeout time.Duration
	Settings     Settings
	Log          *slog.Logger
	// Draining is canceled when the process must finish its attempts and exit, and
	// Killing when its time for that is over.
	Draining, Killing context.Context
}

// Owner decides what a new process may serve, and what the ends of the process and
// of its attempts mean. Its methods must not call those of the process.
type Owner interface {
	// Adopt returns the part of the manifest that the process shall serve. An error
	// ends the launch.
	Adopt(context.Context, *message.Manifest) (*message.Manifest, error)
	// Leaving is called when the process must not get more attempts. If at all, it is
	// called before Lost.
	Leaving()
	// Lost is called once, when the process ends; cause is nil if it was drained.
	Lost(cause error)
	// Settle is called with attempts that have ended, before their reporters are
	// called. It may change the outcomes.
	Settle([]Ended)
}

// Ended is an attempt that has ended.
type Ended struct {
	*Attempt
	Outcome job.Outcome
}

// Process is a plugin process that is up. Four goroutines serve it: send, receive,
// watchHealth and relayOutput. Serve supervises them.
type Process struct {
	Manifest *message.Manifest
	UpSince  time.Time

	spec   Spec
	owner  Owner
	child  *osprocess.Process
	conn   *grpc.ClientConn
	stream handlerv1.Handler_WorkClient
	cancel context.CancelFunc

	mu         sync.Mutex
	attempts   map[uint64]*Attempt
	lastHandle uint64
	queue      message.Queue
	draining   bool
	ended      bool
	// killAt is when the keeper kills the process, unless it gets another time; zero
	// for never. renewal sends the next time.
	killAt  time.Time
	renewal *time.Timer

	// queued is raised when the queue is not empty, to wake the sender.
	queued loop.Signal
	// idle is closed when the process drains and has no attempt left.
	idle     chan struct{}
	idleOnce sync.Once
	// failed carries the first reason to end the process.
	failed chan error
	// received is closed when the stream has ended; receiveErr says how.
	received   chan struct{}
	receiveErr error
	// sendingSince is when the current Send began, in Unix nanoseconds; 0 for none.
	sendingSince atomic.Int64
}

// PID is the process id.
func (p *Process) PID() int { return p.child.PID() }

// Use is what the process uses, as measured in the last few seconds; false if that cannot be
// measured.
func (p *Process) Use() (v1.PluginUse, bool) { return p.child.Use() }

// Begin gives the attempt to the process. It returns nil if the process takes no more,
// because it ends or drains.
func (p *Process) Begin(a *job.Assignment, r job.Reporter) *Attempt {
	now := time.Now()
	until := now.Add(a.LeaseFor)
	p.mu.Lock()
	if p.ended || p.draining {
		p.mu.Unlock()
		return nil
	}
	p.lastHandle++
	begun := &Attempt{
		JobType: a.Type, Begun: now, process: p, handle: p.lastHandle, jobID: a.JobID,
		number: a.Attempt, fence: a.Fence, trace: a.Trace, reporter: r,
	}
	p.attempts[begun.handle] = begun
	begun.killAt = killAt(until, a.LeaseFor)
	p.killEarlierLocked(begun.killAt)
	p.queue.Start(begun.handle, a, until)
	p.mu.Unlock()
	p.queued.Raise()
	return begun
}

// Each calls visit with every attempt in the process.
func (p *Process) Each(visit func(jobType string, begun time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.attempts {
		visit(a.JobType, a.Begun)
	}
}

// Serve stays with the process until it is gone and all its attempts are reported.
// It returns why the process ended; nil if it was drained.
func (p *Process) Serve() error {
	var pool sync.WaitGroup
	pool.Go(p.send)
	pool.Go(p.receive)
	pool.Go(p.watchHealth)
	pool.Go(p.relayOutput)

	cause := p.awaitEnd()
	p.owner.Lost(cause)
	if cause == nil {
		p.askToLeave()
	}
	p.child.End()
	if !p.child.Await(ReapTimeout) {
		p.spec.Log.Error("killed plugin process does not end", "pid", p.PID())
	}
	// What the process reported before it ended may still be in the socket.
	select {
	case <-p.received:
	case <-time.After(p.spec.Settings.ExitWindow):
	}
	p.cancel()
	_ = p.conn.Close()
	pool.Wait()
	cause = p.rootCause(cause)
	p.child.Output().LogSuppressed()
	p.child.RemoveSocketDir()
	p.endAttempts(cause)
	return cause
}

// awaitEnd waits for the first reason to end the process.
func (p *Process) awaitEnd() error {
	draining, idle := p.spec.Draining.Done(), p.idle
	var grace <-chan time.Time
	for {
		select {
		case <-p.child.Gone():
			return p.whyGone()
		case <-p.received:
			return p.whyReceiveEnded()
		case reason := <-p.failed:
			return reason
		case <-p.spec.Killing.Done():
			return ErrClosing
		case <-draining:
			draining = nil
			p.drain()
		case <-idle:
			idle, grace = nil, time.After(p.spec.Settings.KillGrace)
		case <-grace:
			return nil
		}
	}
}

// whyGone returns the reason why we killed the process, if we did, instead of the
// signal that we sent. It returns nil for a drained process, which may exit.
func (p *Process) whyGone() error {
	if p.isIdle() {
		return nil
	}
	select {
	case reason := <-p.failed:
		return reason
	default:
		return p.death()
	}
}

// whyReceiveEnded finds out whether the stream ended because the process did.
func (p *Process) whyReceiveEnded() error {
	if p.isIdle() {
		return nil
	}
	p.owner.Leaving()
	select {
	case <-p.child.Gone():
		return p.whyGone()
	case <-time.After(p.spec.Settings.ExitWindow):
		return fmt.Errorf("stream closed: %w", p.receiveErr)
	}
}

// rootCause replaces an early sign of a death, such as a lost connection, with how the
// process died.
func (p *Process) rootCause(sign error) error {
	if sign == nil || errors.Is(sign, ErrClosing) || !p.child.LeftByItself() {
		return sign
	}
	// The keeper may have killed it before somebody else asked for that.
	if errors.Is(sign, ErrKilled) && p.child.Death().Cause != osprocess.Stalled {
		return sign
	}
	return p.death()
}

// death is how the process ended, once it is gone.
func (p *Process) death() error {
	death := p.child.Death()
	if death.Cause == osprocess.Stalled {
		return stalled{death}
	}
	return death
}

// stalled is the death of a process that its keeper killed because the orchestrator
// did not run. Like a kill on request, it is no fault of the plugin.
type stalled struct{ osprocess.Death }

func (stalled) Is(target error) bool { return target == ErrKilled }

func (s stalled) Unwrap() error { return s.Death }

// fail gives a reason to end the process. Only the first one counts.
func (p *Process) fail(reason error) {
	select {
	case p.failed <- reason:
	default:
	}
}

func (p *Process) isIdle() bool {
	select {
	case <-p.idle:
		return true
	default:
		return false
	}
}

func (p *Process) drain() {
	p.mu.Lock()
	p.drainLocked()
	p.mu.Unlock()
	p.queued.Raise()
}

func (p *Process) drainLocked() {
	p.draining = true
	p.queue.Drain()
	p.checkIdleLocked()
}

func (p *Process) checkIdleLocked() {
	if p.draining && len(p.attempts) == 0 {
		p.idleOnce.Do(func() { close(p.idle) })
	}
}

// endAttempts reports every attempt that is left in a process that is gone.
func (p *Process) endAttempts(cause error) {
	p.mu.Lock()
	p.ended = true
	left := p.attempts
	p.attempts = nil
	if p.renewal != nil {
		p.renewal.Stop()
	}
	p.mu.Unlock()
	if len(left) == 0 {
		return
	}
	outcome := job.Outcome{
		Kind:        job.Crash,
		Message:     fmt.Sprintf("plugin %s, pid %d: %v", p.spec.Plugin, p.PID(), cause),
		Stack:       p.child.Output().Excerpt(),
		CoResidents: len(left) - 1,
	}
	var death osprocess.Death
	if errors.As(cause, &death) {
		outcome.Code = string(death.Cause)
	}
	killed := errors.Is(cause, ErrKilled)
	switch {
	case killed:
		// It is certain which attempt is to blame.
		outcome.CoResidents, outcome.Killed = 0, true
	case errors.Is(cause, ErrClosing):
		// The orchestrator shuts down, so the job is not to blame.
		outcome.Kind, outcome.Stack, outcome.CoResidents = job.Released, "", 0
	}
	bystander := job.Outcome{
		Kind:    job.Released,
		Message: fmt.Sprintf("plugin %s, pid %d: killed because of another attempt", p.spec.Plugin, p.PID()),
	}
	if errors.As(cause, new(stalled)) {
		bystander.Message, bystander.Code = outcome.Message, outcome.Code
	}
	ended := make([]Ended, 0, len(left))
	for _, a := range left {
		if killed && !a.killed {
			ended = append(ended, Ended{a, bystander})
			continue
		}
		ended = append(ended, Ended{a, outcome})
	}
	p.report(ended)
}

// report passes the attempts to the owner, and then to their reporters.
func (p *Process) report(ended []Ended) {
	if len(ended) == 0 {
		return
	}
	p.owner.Settle(ended)
	for _, e := range ended {
		e.reporter.Finished(e.Outcome)
	}
}
