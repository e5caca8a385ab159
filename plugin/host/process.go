package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var (
	errKilled  = errors.New("killed on request")
	errClosing = errors.New("killed at shutdown")
)

// process is a handler process that is up. Four goroutines serve it: send,
// receive, health and output; serve watches over them.
type process struct {
	gen      *generation
	child    *child.Process
	conn     *grpc.ClientConn
	stream   handlerv1.Handler_WorkClient
	cancel   context.CancelFunc
	manifest *message.Manifest
	capacity int
	upSince  time.Time
	// alone says that the process is for one attempt, after which it is
	// drained.
	alone bool

	// inFlight counts reserved slots; guarded by the fleet.
	inFlight int
	bounded  bounded
	// lost says that the process has gone from those that are up, and lostAs
	// what its generation was then; guarded by the fleet.
	lost   bool
	lostAs role
	// warm is when its first attempt has succeeded; zero while none has. Guarded
	// by the fleet.
	warm time.Time
	// excused says that its death does not end the trial that it fell into;
	// guarded by the fleet.
	excused bool

	mu         sync.Mutex
	attempts   map[uint64]*attempt
	lastHandle uint64
	queue      message.Queue
	draining   bool
	ended      bool
	// heldUntil is when the keeper kills the process unless it is told another
	// time; zero for never. renewal tells it.
	heldUntil time.Time
	renewal   *time.Timer

	// nudge tells the sender that the queue is not empty.
	nudge chan struct{}
	// idle is closed when the process drains and has no attempt left.
	idle     chan struct{}
	idleOnce sync.Once
	// failed carries the first reason to end the process.
	failed chan error
	// received is closed when the stream has ended; receiveErr says how.
	received   chan struct{}
	receiveErr error
	// sendingSince is when the message on its way was begun, in Unix
	// nanoseconds; 0 while none is.
	sendingSince atomic.Int64
}

func newProcess(g *generation, c *child.Process, conn *grpc.ClientConn, stream handlerv1.Handler_WorkClient, cancel context.CancelFunc, m *message.Manifest) *process {
	return &process{
		gen: g, child: c, conn: conn, stream: stream, cancel: cancel,
		manifest: m, capacity: g.config.capacity(m), bounded: boundsOf(m), upSince: time.Now(),
		attempts: make(map[uint64]*attempt),
		nudge:    make(chan struct{}, 1),
		idle:     make(chan struct{}),
		failed:   make(chan error, 1),
		received: make(chan struct{}),
	}
}

// begin queues an attempt for a reserved slot. It returns nil when the process
// takes no more.
func (p *process) begin(start *handlerv1.Start, a *job.Assignment, r job.Reporter) *attempt {
	now := time.Now()
	until := now.Add(a.LeaseFor)
	p.mu.Lock()
	if p.ended || p.draining {
		p.mu.Unlock()
		return nil
	}
	p.lastHandle++
	started := &attempt{process: p, handle: p.lastHandle, jobID: a.JobID, jobType: a.Type, number: a.Attempt, fence: a.Fence, trace: a.Trace, begun: now, reporter: r}
	start.Handle = started.handle
	p.attempts[started.handle] = started
	started.killAt = killAt(until, a.LeaseFor)
	p.holdLocked(started.killAt)
	p.queue.Start(start, until)
	p.mu.Unlock()
	p.wake()
	return started
}

func (p *process) wake() {
	select {
	case p.nudge <- struct{}{}:
	default:
	}
}

// fail gives the reason to end the process. The first one counts.
func (p *process) fail(reason error) {
	select {
	case p.failed <- reason:
	default:
	}
}

// hangUp closes the connection of a process that was never served.
func (p *process) hangUp() {
	p.cancel()
	_ = p.conn.Close()
}

// serve stays with the process until it is gone and all its attempts are
// reported, and returns why it ended; nil when it was drained.
func (p *process) serve() error {
	var crew sync.WaitGroup
	crew.Go(p.send)
	crew.Go(p.receive)
	crew.Go(p.watchHealth)
	crew.Go(p.relayOutput)

	cause := p.watch()
	p.gen.lose(p, cause)
	if cause == nil {
		p.letGo()
	}
	p.child.End()
	if !p.child.Await(reapPatience) {
		p.gen.log.Error("killed plugin process does not end", "pid", p.child.PID())
	}
	// What it reported before it ended may still be in the socket.
	select {
	case <-p.received:
	case <-time.After(p.gen.settings.ExitWindow):
	}
	p.hangUp()
	crew.Wait()
	cause = p.rootCause(cause)
	p.child.Output().TellSuppressed()
	p.child.RemoveSocketDir()
	p.abandon(cause)
	return cause
}

// watch waits for the first reason to end the process.
func (p *process) watch() error {
	drain, idle := p.gen.draining.Done(), p.idle
	grace := (<-chan time.Time)(nil)
	for {
		select {
		case <-p.child.Gone():
			return p.whyGone()
		case <-p.received:
			return p.whyReceiveEnded()
		case reason := <-p.failed:
			return reason
		case <-p.gen.killing.Done():
			return errClosing
		case <-drain:
			drain = nil
			p.drain()
		case <-idle:
			idle, grace = nil, time.After(p.gen.settings.KillGrace)
		case <-grace:
			return nil
		}
	}
}

// whyGone prefers the reason why the host has killed the process to the signal.
// A process that was drained may go.
func (p *process) whyGone() error {
	if p.idling() {
		return nil
	}
	select {
	case reason := <-p.failed:
		return reason
	default:
		return p.death()
	}
}

// rootCause prefers how the process has died to the signs of it, a lost connection
// or an answer that did not come, which can be seen before.
func (p *process) rootCause(sign error) error {
	if sign == nil || errors.Is(sign, errKilled) || errors.Is(sign, errClosing) || !p.child.LeftByItself() {
		return sign
	}
	return p.death()
}

// whyReceiveEnded tells a process that has ended with its stream from one that
// lives on without.
func (p *process) whyReceiveEnded() error {
	if p.idling() {
		return nil
	}
	p.gen.remove(p)
	select {
	case <-p.child.Gone():
		return p.whyGone()
	case <-time.After(p.gen.settings.ExitWindow):
		return fmt.Errorf("stream closed: %w", p.receiveErr)
	}
}

func (p *process) idling() bool {
	select {
	case <-p.idle:
		return true
	default:
		return false
	}
}

func (p *process) drain() {
	p.mu.Lock()
	p.drainLocked()
	p.mu.Unlock()
	p.wake()
}

func (p *process) drainLocked() {
	p.draining = true
	p.queue.Drain()
	p.tellIdleLocked()
}

func (p *process) tellIdleLocked() {
	if p.draining && len(p.attempts) == 0 {
		p.idleOnce.Do(func() { close(p.idle) })
	}
}

// letGo asks a process that has nothing more to do to leave, and gives it time.
func (p *process) letGo() {
	ctx, cancel := context.WithTimeout(p.gen.killing, p.gen.settings.KillGrace)
	defer cancel()
	askToLeave(ctx, p.conn)
	p.child.CloseStdin()
	select {
	case <-p.child.Gone():
	case <-ctx.Done():
	}
}

// abandon reports every attempt that is left. Nobody else reports for the
// process any more.
func (p *process) abandon(cause error) {
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
		Message:     fmt.Sprintf("plugin %s, pid %d: %v", p.gen.config.Name, p.child.PID(), cause),
		Stack:       p.child.Output().Excerpt(),
		CoResidents: len(left) - 1,
	}
	var death child.Death
	if errors.As(cause, &death) {
		outcome.Code = string(death.Cause)
	}
	if errors.Is(cause, errClosing) {
		// It is the host that goes, and the handler is certain to have
		// stopped: the job is not to blame.
		outcome.Kind, outcome.Stack, outcome.CoResidents = job.Released, "", 0
	}
	if errors.Is(cause, errKilled) {
		// It is known whose fault it was.
		outcome.CoResidents, outcome.Killed = 0, true
	}
	bystander := job.Outcome{
		Kind:    job.Released,
		Message: fmt.Sprintf("plugin %s, pid %d: killed because of another attempt", p.gen.config.Name, p.child.PID()),
	}
	if errors.As(cause, new(stalled)) {
		bystander.Message, bystander.Code = outcome.Message, outcome.Code
	}
	endings := make([]ending, 0, len(left))
	for _, a := range left {
		if errors.Is(cause, errKilled) && !a.killed {
			endings = append(endings, ending{a, bystander})
			continue
		}
		endings = append(endings, ending{a, outcome})
	}
	p.gen.settle(p, endings)
	for _, e := range endings {
		e.attempt.reporter.Finished(e.outcome)
	}
}
