package runtime

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/runtime/progress"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// settleTimeout bounds one try to write settlements or reports.
const settleTimeout = 10 * time.Second

// triesAtOnce is how often settle tries to write endings before it pauses. The first try
// writes them as decided. The next ones are for jobs that were canceled meanwhile, and
// for values that the database refuses.
const triesAtOnce = 3

// The pause before the next try doubles from firstPause to longestPause.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// path is a job's way through this worker, top to bottom: claim, dispatch, run,
// decide, settle. The claimer, the dispatcher and the settler have a loop each, and
// say when it is time for a step, and for which jobs; the steps themselves are here.
type path struct {
	cfg     Config
	store   Store
	plugins Plugins
	jobs    *jobs.Service
	// ctx ends when writing is no longer worth a try.
	ctx context.Context

	claimer    *claimer
	dispatcher *dispatcher
	settler    *settler
	parents    *settler // of those with follow-ups
	inFlight   *inFlight
	reports    *progress.Recorder
	launches   *launches
	log        *attemptLog
	shared     *shared
}

func newPath(ctx context.Context, cfg Config, store Store, plugins Plugins, service *jobs.Service, newPool loop.Signal) *path {
	p := &path{
		cfg: cfg, store: store, plugins: plugins, jobs: service, ctx: ctx,
		inFlight: newInFlight(), settler: newSettler(), parents: newSettler(), launches: newLaunches(), log: newAttemptLog(cfg.Log, cfg.JobLog),
	}
	p.reports = progress.NewRecorder(ctx, cfg.ReportInterval, p.saveReports, p.settler.added)
	p.shared = &shared{killGrace: cfg.KillGrace, ends: p, recorder: p.reports, metrics: service.Metrics}
	p.dispatcher = newDispatcher(cfg, p.inFlight)
	p.claimer = newClaimer(cfg, store, plugins, p.inFlight, p.dispatcher, p.settler, service.Hints, newPool, service.Rules, service.Pace)
	return p
}

// claim takes jobs under leases and queues them for the plugin. It returns how many
// there were.
func (p *path) claim(ctx context.Context, plan claimPlan, limit int) (int, error) {
	// Once sent, a claim is completed: its answer says what we now own.
	try, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	sent := time.Now()
	claimed, err := p.store.Claim(try, p.cfg.Worker.ID, plan.types, limit, p.cfg.Lease)
	p.jobs.Metrics.Batch(metrics.OpClaim, len(claimed), sent, err)
	if err != nil && len(claimed) == 0 {
		return 0, err
	}
	p.jobs.Metrics.Claimed(claimed)
	taken := len(claimed)
	claimed, unparked := p.hold(try, claimed)
	attempts := make([]*attempt, 0, len(claimed))
	answered := time.Now()
	for i := range claimed {
		one := &claimed[i]
		traced := p.jobs.Spans.Claimed(one, p.cfg.Worker.ID, sent, answered) // which changes the context that the job carries
		a := p.newAttempt(one, &plan.pool, sent.Add(p.cfg.Lease), answered, traced)
		if !one.ExpiresAt.IsZero() {
			a.startBy = sent.Add(one.ExpiresAt.Sub(one.ClaimedAt))
		}
		p.inFlight.add(a)
		if one.Lapsed() {
			a.lapse()
			continue
		}
		attempts = append(attempts, a)
	}
	for i := range unparked {
		one := &unparked[i]
		a := p.newAttempt(one, &plan.pool, sent.Add(p.cfg.Lease), answered, p.jobs.Spans.Claimed(one, p.cfg.Worker.ID, sent, answered))
		p.inFlight.add(a)
		a.release()
	}
	p.dispatcher.add(plan.pool, attempts)
	p.dispatcher.dispatch(ctx)
	return taken, err // after an error, the claimer releases what else was claimed
}

// start gives an attempt to a process of its plugin. It returns false, with the
// attempt back in its queue, when the plugin has no slot after all.
func (p *path) start(a *attempt) bool {
	if a.late() {
		a.lapse()
	}
	if paused(p.jobs.Rules(), p.cfg.Worker.ID, a) {
		a.release()
	}
	leaseFor, ok := a.begin(p.cfg.Lease / askBefore)
	if !ok { // it was stopped while it waited
		p.inFlight.notStarted()
		return true
	}
	run, err := p.plugins.Start(a.pool.Plugin, job.Assignment{Claimed: a.claimed, LeaseFor: leaseFor, Isolated: a.isolated()}, a)
	if err == nil {
		a.started(run)
		return true
	}
	p.inFlight.notStarted()
	if a.notStarted() && !p.dispatcher.putBack(a) {
		a.stop(job.CancelShutdown)
	}
	return false
}

// finish ends an attempt whose handler is done, or that was stopped before it was
// started. The attempt calls it, once.
func (p *path) finish(a *attempt, outcome job.Outcome) {
	began, history, stopped := a.last()
	ran := !began.IsZero()
	if ran && a.isolated() {
		outcome = p.launches.delayed(a.pool.Plugin, outcome, stopped)
	}
	p.inFlight.finished(ran)
	a.reports.End()
	a.spans.Ended(began)
	e := &a.ending
	*e = ending{
		attempt: a, pool: a.pool, lease: a.lease(), jobType: a.claimed.Type, history: history, outcome: bounded(outcome),
		ran: ran, spans: a.spans, trace: &a.claimed.Trace, reports: a.reports,
	}
	if ran {
		now := time.Now()
		e.took, e.done = now.Sub(began), a.sinceClaim(now)
	}
	p.decide(e)
	if outcome.Kind == job.Crash && p.cfg.CrashPolicy == Expire {
		e.holdUntil = a.heldUntil()
	}
	took, kind := e.took, e.decision.Kind
	p.settler.add(e)
	if ran {
		p.jobs.Metrics.Ran(a.claimed.Type, kind, took)
		p.dispatcher.ended(a, outcome.Kind, took)
	}
}

// takeOver ends an attempt of a lost worker, whose lease the reaper has taken over.
func (p *path) takeOver(e *ending) {
	p.decide(e)
	p.settler.add(e)
}

// decide turns the outcome into what is to be written.
func (p *path) decide(e *ending) {
	e.history.MaxCrashes = p.cfg.MaxCrashes(e.jobType)
	e.decision = job.Decide(p.jobs.JobTypes.RetryPolicy(e.jobType), e.history, e.outcome, rand.Float64())
}

// settle writes how attempts ended. It tries until the database answers: the leases
// stay held meanwhile, and every write is fenced, so that trying again is safe.
func (p *path) settle(ends []*ending) { p.untilSettled(p.handOver(ends), p.settleOnce) }

// untilSettled tries once for all endings, and again for those that once returns.
func (p *path) untilSettled(ends []*ending, once func([]*ending) []*ending) {
	pause := firstPause
	for tries := 0; len(ends) > 0; tries++ {
		if tries >= triesAtOnce {
			loop.Pause(p.ctx, loop.Jittered(pause))
			pause = min(2*pause, longestPause)
		}
		ends = once(ends)
	}
}

// settleOnce returns the endings that must be written again, in another way.
func (p *path) settleOnce(ends []*ending) []*ending { return p.write(ends, p.store.Settle) }

// write settles endings by a verb of the store. It returns those that must be written
// again, in another way.
func (p *path) write(
	ends []*ending, settle func(context.Context, []job.Settlement) ([]job.SettleResult, error),
) (again []*ending) {
	batch := make([]job.Settlement, len(ends))
	for i, e := range ends {
		batch[i] = e.settlement()
	}
	var sent time.Time
	var results []job.SettleResult
	err := p.untilAnswered(metrics.OpSettle, len(batch), func(ctx context.Context) (err error) {
		sent = time.Now()
		results, err = settle(ctx, batch)
		return err
	})
	switch {
	case err != nil && (len(ends) == 1 || p.ctx.Err() != nil):
		for _, e := range ends {
			p.giveUp(e, err)
		}
		return nil
	case err != nil: // trying again will not help: one of them breaks the batch
		for i := range ends {
			again = append(again, p.write(ends[i:i+1], settle)...)
		}
		return again
	}
	settled := make([]*ending, 0, len(ends))
	for i, e := range ends {
		switch results[i] {
		case job.Settled:
			settled = append(settled, e)
		case job.Lost:
			p.lost(e)
		case job.Canceling:
			e.history.CancelRequested = true
			p.decide(e)
			again = append(again, e)
		case job.Refused:
			if e.refused {
				p.giveUp(e, job.ErrBadData)
				continue
			}
			e.refused = true
			p.refuse(e, e.notStored())
			again = append(again, e)
		case job.Held:
			again = append(again, e)
		}
	}
	p.settled(settled, sent)
	return again
}

// lost ends the way of an attempt whose settlement was refused, because its lease is another's now.
func (p *path) lost(e *ending) {
	p.inFlight.remove(e)
	if e.lostBy != "" { // by its worker, and then by this process to another one, which tells of the attempt
		p.cfg.Log.Debug("another process ends the attempt", slog.String("job_id", e.lease.JobID.String()), slog.Int64("fence", e.lease.Fence))
		return
	}
	p.jobs.Metrics.LeaseLost(metrics.LossAtSettle)
	if e.spans != nil {
		lost := e.settlement()
		e.spans.Lost(&lost)
	}
	e.followUps.done(job.ErrLeaseLost)
	p.cfg.Log.Warn("attempt ended too late: its lease was lost", slog.String("job_id", e.lease.JobID.String()),
		slog.Int64("fence", e.lease.Fence), slog.String("outcome", string(e.outcome.Kind)))
}

// settled ends the way of jobs: their settlements are in the ledger.
func (p *path) settled(ends []*ending, sent time.Time) {
	p.inFlight.remove(ends...)
	p.count(ends)
	for _, e := range ends {
		if e.spans != nil {
			settled := e.settlement()
			e.spans.Settled(&settled, sent)
		}
		p.log.settled(e)
		if !e.started() && e.outcome.Code == job.CodeExpired {
			p.jobs.Metrics.Expired(e.jobType)
		}
		p.jobs.Settled(&e.lease, &e.decision)
		if e.followUps != nil {
			p.followedUp(e.followUps)
		}
	}
}

// count counts settled attempts. Those next to each other are mostly alike.
func (p *path) count(ends []*ending) {
	for len(ends) > 0 {
		first, alike := ends[0], 1
		for alike < len(ends) && ends[alike].jobType == first.jobType && ends[alike].decision.Kind == first.decision.Kind {
			alike++
		}
		p.jobs.Metrics.Settled(first.jobType, first.decision.Kind, alike)
		ends = ends[alike:]
	}
}

// giveUp abandons an attempt that cannot be settled. Its lease expires, and a reaper
// settles the job.
func (p *path) giveUp(e *ending, cause error) {
	p.inFlight.remove(e)
	p.cfg.Log.Error("attempt could not be settled; its lease will expire",
		slog.String("job_id", e.lease.JobID.String()), slog.Any("error", cause))
}

// untilAnswered tries until the database answers, with pauses that grow to a second.
// It returns the error that trying again will not cure, or the last one when the
// worker ends.
func (p *path) untilAnswered(o metrics.Operation, size int, try func(context.Context) error) error {
	pause := firstPause
	for {
		ctx, cancel := context.WithTimeout(p.ctx, settleTimeout)
		began := time.Now()
		err := try(ctx)
		timedOut := ctx.Err() != nil
		cancel()
		p.jobs.Metrics.Batch(o, size, began, err)
		if err == nil || p.ctx.Err() != nil || !(errors.Is(err, job.ErrUnavailable) || timedOut) {
			return err
		}
		p.cfg.Log.Warn("database did not answer; trying again", slog.String("operation", o.String()),
			slog.Int("batch", size), slog.Duration("pause", pause), slog.Any("error", err))
		loop.Pause(p.ctx, loop.Jittered(pause))
		pause = min(2*pause, longestPause)
	}
}

// newAttempt returns a claimed job as an attempt that waits for a slot of the pool. The answer
// to the claim came at claimedAt, by the local clock.
func (p *path) newAttempt(c *job.Claimed, pool *job.Pool, provenUntil, claimedAt time.Time, traced *spans.Attempt) *attempt {
	return &attempt{
		shared: p.shared, claimed: *c, pool: pool, provenUntil: provenUntil, claimedAt: claimedAt, spans: traced,
	}
}
