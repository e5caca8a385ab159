package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

const (
	// drainLook is how often a worker that is drained looks whether it still has jobs.
	drainLook = 100 * time.Millisecond
	// rulesLook is how often pauses are put in force even if nothing has changed.
	rulesLook = time.Minute
)

// pauses puts in force what the rules say beyond claims: it releases claimed jobs that
// must not be started any more, asks running handlers to stop where a pause says so, and
// drains this worker.
type pauses struct {
	cfg      Config
	store    Store
	jobs     *jobs.Service
	claimer  *claimer
	inFlight *inFlight

	inForce *job.Rules
	// drainUntil is when the handlers of this worker are asked to stop; zero unless it is
	// drained.
	drainUntil time.Time
	// drained says that the database knows that the drain has ended.
	drained bool
}

func (p *pauses) run(ctx context.Context) {
	wait := time.Duration(0)
	for p.jobs.RulesChanged().Wait(ctx, wait) {
		p.apply()
		p.drain(ctx)
		if wait = rulesLook; !p.drainUntil.IsZero() && !p.drained {
			wait = drainLook
		}
	}
}

func (p *pauses) apply() {
	rules := p.jobs.Rules()
	if worker := p.cfg.Worker.ID; len(p.inForce.Pauses()) > 0 || p.inForce.Draining(worker) != rules.Draining(worker) {
		p.jobs.Hints.Ready().Raise(nil) // jobs can perhaps be claimed that could not be before
	}
	p.inForce = rules
	for _, a := range p.inFlight.all() {
		switch {
		case rules.Drained(a.pool.Plugin, a.claimed.Type, a.claimed.Tenant):
			a.stop(job.CancelShutdown)
		case paused(rules, p.cfg.Worker.ID, a):
			a.release()
		}
	}
}

// paused reports whether an attempt must not be started. Whether its tenant is paused was
// checked at the claim, unless the pause asks running attempts to stop, too.
func paused(rules *job.Rules, worker string, a *attempt) bool {
	_, stopped := rules.Stopped(a.pool.Plugin, a.claimed.Type)
	return stopped || rules.Draining(worker) || rules.Drained(a.pool.Plugin, a.claimed.Type, a.claimed.Tenant)
}

// drain lets running handlers finish within Config.DrainTimeout, then stops them and
// releases their jobs, like the end of the worker. But the worker stays, and may be
// resumed.
func (p *pauses) drain(ctx context.Context) {
	switch draining := p.jobs.Rules().Draining(p.cfg.Worker.ID); {
	case draining && p.drainUntil.IsZero():
		running, _ := p.inFlight.counts()
		p.cfg.Log.Info("draining until resumed", slog.Int("running", running), slog.Duration("drain", p.cfg.DrainTimeout))
		p.drainUntil = time.Now().Add(p.cfg.DrainTimeout)
	case !draining && !p.drainUntil.IsZero():
		p.cfg.Log.Info("resumed after a drain")
		p.drainUntil, p.drained = time.Time{}, false
	}
	if p.drainUntil.IsZero() || p.drained {
		return
	}
	if !time.Now().Before(p.drainUntil) {
		for _, a := range p.inFlight.all() {
			a.stop(job.CancelShutdown)
		}
	}
	if _, held := p.inFlight.counts(); held > 0 || !p.claimer.drained.Load() {
		return
	}
	try, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	if err := p.store.WorkerDrained(try, p.cfg.Worker.ID); err != nil {
		p.cfg.Log.Warn("drained, but the database does not know it yet; trying again", slog.Any("error", err))
		loop.Pause(ctx, loop.Jittered(time.Second))
		return
	}
	p.cfg.Log.Info("drained")
	p.drained = true
}
