package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// isolated is an attempt that has a process of its own, or waits for one. Until the
// process is up, Cancel ends the attempt, and Extend keeps the lease for the process.
type isolated struct {
	gen      *generation
	a        *job.Assignment
	reporter job.Reporter
	// giveUp ends the launch.
	giveUp context.CancelFunc

	mu sync.Mutex
	// run is nil until the process is up.
	run *connection.Attempt
	// canceled is the first reason to stop; empty for none.
	canceled job.CancelReason
	// until is how long the lease is known to last.
	until time.Time
}

var _ job.Run = (*isolated)(nil)

// startIsolated launches a process for the attempt in the background.
func (f *fleet) startIsolated(a *job.Assignment, r job.Reporter) (job.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	if !g.mayIsolate(a.Type) {
		return nil, fmt.Errorf("plugin %s: isolated attempt: %w", f.name, ErrNoSlot)
	}
	g.ramp.begin(a.Type, g.settings.Backoff.StableAfter)
	ctx, giveUp := context.WithCancel(g.draining)
	s := &isolated{gen: g, a: a, reporter: r, giveUp: giveUp, until: time.Now().Add(a.LeaseFor)}
	g.running.Go(func() {
		defer giveUp()
		s.serve(ctx)
	})
	return s, nil
}

// serve stays with the attempt from its launch until its process is gone.
func (s *isolated) serve(ctx context.Context) {
	g := s.gen
	defer g.changeRamp(func() { g.ramp.end(s.a.Type) })
	i, err := s.launch(ctx)
	if err != nil {
		s.reporter.Finished(s.neverBegan(err))
		return
	}
	s.reporter.Began()
	s.begin(i)
	if cause := i.Serve(); g.isolatedEnded(i, cause) {
		// Keep the slot for a moment, or jobs that crash at once would cause a storm of
		// forks.
		select {
		case <-time.After(g.settings.Backoff.Min):
		case <-g.draining.Done():
		}
	}
}

func (s *isolated) launch(ctx context.Context) (*instance, error) {
	g := s.gen
	if err := g.isolatedBreaker.admit(ctx); err != nil {
		return nil, err
	}
	defer g.isolatedBreaker.release()
	i, err := g.launch(ctx, true)
	if err != nil {
		if ctx.Err() == nil {
			g.launchFailed(g.isolatedBreaker, err)
			g.changeRamp(g.ramp.failed)
		}
		return nil, err
	}
	if g.hasProcess() {
		g.isolatedBreaker.reset()
	}
	i.take(s.a.Type, 1)
	g.log.Info("plugin process up for one attempt", "pid", i.PID(), "job_id", s.a.JobID.String())
	return i, nil
}

// begin gives the attempt to its process, with the lease and the cancel that it has got
// so far.
func (s *isolated) begin(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a.LeaseFor = time.Until(s.until)
	s.run = i.Begin(s.a, s.reporter)
	if s.canceled != "" {
		s.run.Cancel(s.canceled)
	}
}

// neverBegan is the outcome of an attempt that got no process.
func (s *isolated) neverBegan(err error) job.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcome := job.Outcome{Kind: job.Released, Code: job.CodeNoProcess}
	switch {
	case s.canceled == job.CancelRequested:
		return job.Outcome{Kind: job.CancelConfirmed}
	case s.canceled != "":
		outcome.Message = "stopped before its own process was up"
	case errors.Is(err, context.Canceled):
		err = errors.New("the plugin is being stopped")
		fallthrough
	default:
		outcome.Message = fmt.Sprintf("plugin %s: its own process did not come up: %v", s.gen.config.Name, err)
	}
	return outcome
}

// Cancel asks the handler to stop, or ends an attempt that has not begun.
func (s *isolated) Cancel(reason job.CancelReason) {
	if run := s.runOrGiveUp(reason); run != nil {
		run.Cancel(reason)
	}
}

// Kill kills the process and everything it has started, or ends its launch.
func (s *isolated) Kill() {
	if run := s.runOrGiveUp(job.CancelShutdown); run != nil {
		run.Kill()
	}
}

// runOrGiveUp returns the attempt in its process. If it has none yet, it ends the
// launch, for this reason or an earlier one.
func (s *isolated) runOrGiveUp(reason job.CancelReason) *connection.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		if s.canceled == "" {
			s.canceled = reason
		}
		s.giveUp()
	}
	return s.run
}

// Extend passes the lease on, or keeps it for the process.
func (s *isolated) Extend(leaseFor time.Duration) {
	s.mu.Lock()
	run := s.run
	s.until = time.Now().Add(leaseFor)
	s.mu.Unlock()
	if run != nil {
		run.Extend(leaseFor)
	}
}

// hasProcess reports whether any of the processes that attempts share is up.
func (g *generation) hasProcess() bool {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	return len(g.live) > 0
}

// isolatedEnded records how the process of an isolated attempt ended, and reports
// whether it crashed. A crash of a suspect is expected, so it neither counts against
// the plugin nor delays its other processes. But while none of these is up, the handler
// probably crashes on every job. Then the next suspects wait for a backoff that grows
// until one survives. Without it, all of their jobs would soon be dead letters.
func (g *generation) isolatedEnded(i *instance, cause error) (crashed bool) {
	log := g.log.With("pid", i.PID(), "up", time.Since(i.UpSince))
	switch {
	case cause == nil:
		log.Info("plugin process for one attempt stopped")
		g.isolatedBreaker.reset()
		g.changeRamp(func() { g.ramp.survived(g.mostIsolated()) })
		return false
	case errors.Is(cause, connection.ErrClosing):
		log.Info("plugin process for one attempt stopped")
		return false
	case errors.Is(cause, connection.ErrKilled):
		log.Warn("plugin process for one attempt killed", "error", cause)
		g.happened(job.PluginKilled, fmt.Errorf("pid %d, for one attempt: %w", i.PID(), cause))
		return false
	}
	log.Warn("plugin process for one attempt ended", "error", cause)
	g.happened(job.PluginCrashed, fmt.Errorf("pid %d, for one attempt: %w", i.PID(), cause))
	g.changeRamp(g.ramp.failed)
	count := func() {}
	if !g.hasProcess() {
		count = g.isolatedBreaker.fail
	}
	g.countCrash()
	g.recordFailure(count, fmt.Errorf("pid %d: %w", i.PID(), cause), false)
	return true
}

// initiallyIsolated is how many attempts may run isolated before any has shown
// whether its process survives.
const initiallyIsolated = 2

// ramp bounds how many attempts of a generation run isolated at once: a few at first,
// one more for each attempt whose process survives, half as many after each process
// that dies. So innocent suspects are cleared in a few rounds, and a handler that
// crashes on every job takes few processes at once. The fleet's lock guards it.
type ramp struct {
	// allowed is never below initiallyIsolated.
	allowed int
	// running counts the attempts that have their own process or wait for it. ofType
	// counts them by job type.
	running int
	ofType  map[string]int
	// lastEnded is when the last of them ended.
	lastEnded time.Time
}

func newRamp() ramp { return ramp{allowed: initiallyIsolated, ofType: make(map[string]int)} }

func (r *ramp) begin(jobType string, forgetAfter time.Duration) {
	r.allowed = r.allowedNow(forgetAfter)
	r.running++
	r.ofType[jobType]++
}

func (r *ramp) end(jobType string) {
	r.running--
	if r.ofType[jobType]--; r.ofType[jobType] == 0 {
		delete(r.ofType, jobType)
	}
	r.lastEnded = time.Now()
}

// allowedNow starts over if nothing has run isolated for forgetAfter: what happened to
// earlier suspects then says nothing about the next ones.
func (r *ramp) allowedNow(forgetAfter time.Duration) int {
	if r.running == 0 && time.Since(r.lastEnded) > forgetAfter {
		return initiallyIsolated
	}
	return r.allowed
}

// survived counts an attempt whose process has survived.
func (r *ramp) survived(bound int) { r.allowed = max(min(r.allowed+1, bound), initiallyIsolated) }

// failed counts a process that died, or did not come up.
func (r *ramp) failed() { r.allowed = max(r.allowed/2, initiallyIsolated) }

// changeRamp calls change with the fleet locked.
func (g *generation) changeRamp(change func()) {
	g.fleet.mu.Lock()
	change()
	g.fleet.mu.Unlock()
	g.signal()
}

// freeIsolated returns how many more attempts can run isolated now. The fleet is
// locked.
func (g *generation) freeIsolated() int {
	if g.role != serving || g.manifest == nil || g.draining.Err() != nil || g.isolatedBreaker.holding() {
		return 0
	}
	allowed := g.ramp.allowedNow(g.settings.Backoff.StableAfter)
	return max(min(allowed, g.mostIsolated())-g.ramp.running, 0)
}

// mostIsolated is the upper bound of the ramp, from the configuration and from how many
// attempts the plugin's processes may run at once. The fleet is locked.
func (g *generation) mostIsolated() int {
	return min(g.fleet.config.Isolated, max(g.config.Processes*g.config.capacity(g.manifest), initiallyIsolated))
}

// freeIsolatedOf is how many more attempts of a type can run isolated now, if the type
// has a limit in each process. The fleet is locked.
func (g *generation) freeIsolatedOf(jobType string, limit int) int {
	return max(g.config.Processes*limit-g.ramp.ofType[jobType], 0)
}

// mayIsolate reports whether another attempt of the type can run isolated now. The
// fleet is locked.
func (g *generation) mayIsolate(jobType string) bool {
	if g.freeIsolated() < 1 {
		return false
	}
	limit := typeLimits(g.manifest)[jobType]
	return limit == 0 || g.freeIsolatedOf(jobType, limit) > 0
}
