package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// solo is an attempt that has a process of its own, or will. What it is told
// before the process is up is kept: a cancel ends it, a lease is passed on.
type solo struct {
	gen      *generation
	start    *handlerv1.Start
	a        *job.Assignment
	reporter job.Reporter
	// stop gives up the launch.
	stop context.CancelFunc

	mu sync.Mutex
	// run is nil until the process is up.
	run *attempt
	// canceled is the first reason to stop; empty while there is none.
	canceled job.CancelReason
	// until is when the lease is no longer proven.
	until time.Time
}

var _ job.Run = (*solo)(nil)

// startAlone launches a process for the attempt, in the background.
func (f *fleet) startAlone(start *handlerv1.Start, a *job.Assignment, r job.Reporter) (job.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	if g.manifest == nil || !g.mayBeAlone(a.Type) {
		return nil, fmt.Errorf("plugin %s, a process of its own: %w", f.name, ErrNoSlot)
	}
	g.ramp.begin(a.Type, g.settings.Backoff.StableAfter)
	ctx, stop := context.WithCancel(g.draining)
	s := &solo{gen: g, start: start, a: a, reporter: r, stop: stop, until: time.Now().Add(a.LeaseFor)}
	g.slots.Go(func() {
		defer stop()
		s.live(ctx)
	})
	return s, nil
}

// live is the attempt from its launch until its process is gone.
func (s *solo) live(ctx context.Context) {
	g := s.gen
	defer g.releaseAlone(s.a.Type)
	p, err := s.launch(ctx)
	if err != nil {
		s.reporter.Finished(s.neverBegan(err))
		return
	}
	s.reporter.Began()
	s.begin(p)
	if cause := p.serve(); g.soloEnded(p, cause) {
		// A slot that comes back at once would make a fork storm of jobs that
		// crash at once.
		select {
		case <-time.After(g.settings.Backoff.Min):
		case <-g.draining.Done():
		}
	}
}

func (s *solo) launch(ctx context.Context) (*process, error) {
	g := s.gen
	if err := g.aloneBreaker.admit(ctx); err != nil {
		return nil, err
	}
	defer g.aloneBreaker.release()
	p, err := g.launch(ctx)
	if err == nil {
		if g.staysUp() {
			g.aloneBreaker.forgive()
		}
		p.alone = true
		p.take(s.a.Type)
		g.log.Info("plugin process up for one attempt", "pid", p.child.PID(), "job_id", s.a.JobID.String())
		return p, nil
	}
	if ctx.Err() == nil {
		g.launchFailed(g.aloneBreaker, err)
		g.rampDown()
	}
	return nil, err
}

// begin gives the attempt to its process, with what it was told meanwhile.
func (s *solo) begin(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a.LeaseFor = time.Until(s.until)
	s.run = p.begin(s.start, s.a, s.reporter)
	if s.canceled != "" {
		s.run.Cancel(s.canceled)
	}
}

// neverBegan is the outcome when there was no process to begin in.
func (s *solo) neverBegan(err error) job.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.canceled {
	case job.CancelRequested:
		return job.Outcome{Kind: job.CancelConfirmed}
	case job.CancelTimeout, job.CancelShutdown, job.CancelLeaseLost:
		return job.Outcome{Kind: job.Released, Code: CodeNoProcess, Message: "stopped before a process of its own was up"}
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("the plugin is being stopped")
	}
	return job.Outcome{
		Kind: job.Released, Code: CodeNoProcess,
		Message: fmt.Sprintf("plugin %s: no process of its own came up: %v", s.gen.config.Name, err),
	}
}

// Cancel asks the handler to stop, and ends an attempt that has not begun.
func (s *solo) Cancel(reason job.CancelReason) {
	if run := s.stopped(reason); run != nil {
		run.Cancel(reason)
	}
}

// Kill ends the process and all it has started, or its launch.
func (s *solo) Kill() {
	if run := s.stopped(job.CancelShutdown); run != nil {
		run.Kill()
	}
}

// stopped gives up the launch, for the reason that came first, or returns what
// has come of it.
func (s *solo) stopped(reason job.CancelReason) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		if s.canceled == "" {
			s.canceled = reason
		}
		s.stop()
	}
	return s.run
}

// Extend passes the lease on, or keeps it for the process.
func (s *solo) Extend(leaseFor time.Duration) {
	s.mu.Lock()
	run := s.run
	s.until = time.Now().Add(leaseFor)
	s.mu.Unlock()
	if run != nil {
		run.Extend(leaseFor)
	}
}

func (g *generation) releaseAlone(jobType string) {
	g.fleet.mu.Lock()
	g.ramp.end(jobType)
	g.fleet.mu.Unlock()
	g.signal()
}

// rampUp lets one more attempt be alone at once: one has got through.
func (g *generation) rampUp() {
	g.aloneBreaker.forgive()
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	g.ramp.cleared(g.mostAlone())
}

// rampDown lets fewer attempts be alone at once: a process has died, or did not
// come up.
func (g *generation) rampDown() {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	g.ramp.failed()
}

// staysUp reports whether any of the processes that attempts share is up.
func (g *generation) staysUp() bool {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	return len(g.live) > 0
}

// soloEnded records how a process for one attempt ended, and reports whether it
// crashed. That is not counted against the plugin: it was to be expected, and
// its other processes need not wait. But while none of them is up, it is likely
// that the handler dies whatever it is given: then suspects wait for a backoff that
// grows until one gets through, or their jobs would all be dead soon.
func (g *generation) soloEnded(p *process, cause error) (crashed bool) {
	log := g.log.With("pid", p.child.PID(), "up", time.Since(p.upSince))
	switch {
	case cause == nil || errors.Is(cause, errClosing):
		log.Info("plugin process for one attempt stopped")
		if cause == nil {
			g.rampUp()
		}
		return false
	case errors.Is(cause, errKilled):
		log.Warn("plugin process for one attempt killed", "error", cause)
		return false
	}
	log.Warn("plugin process for one attempt ended", "error", cause)
	g.rampDown()
	if !g.staysUp() {
		g.aloneBreaker.fail()
	}
	g.crashed()
	g.note(fmt.Errorf("pid %d: %w", p.child.PID(), cause), false)
	return true
}
