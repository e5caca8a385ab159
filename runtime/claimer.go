package runtime

import (
	"context"
	"log/slog"
	"maps"
	stdruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

const (
	// claimBatch bounds one claim.
	claimBatch = 750
	// claimTimeout bounds one try to claim.
	claimTimeout = 5 * time.Second
	// unansweredFor is how long the server may work on a claim that got no answer:
	// longer than any statement may take, not counting its wait for a standby.
	unansweredFor = 20 * time.Second
	// gatherFor is how long the claimer lets free slots gather while there is a
	// backlog. A claim for one slot costs about as much as a claim for twenty.
	gatherFor = time.Millisecond
	// minHint is the batch hint where the last claim brought few jobs. Asking for more
	// than there are is not free: each comes with an id for its lease.
	minHint = 16
	// trickleFor is how long after a claim the next one waits while jobs arrive faster
	// than they can be claimed one by one. A lone job is claimed at once.
	trickleFor = 2 * time.Millisecond
	// lookAgainAfter is when the claimer looks for jobs of the same types again after a claim
	// that brought some, but fewer than it asked for, or none although there was a hint: others
	// may have been under another claimer's lock, or on their way into the list.
	lookAgainAfter = 100 * time.Millisecond
)

// claimer decides when to claim, and how many jobs of which types: as many as there
// are free slots, and some ahead, of the types that live plugins serve.
type claimer struct {
	cfg        Config
	store      Store
	plugins    Plugins
	inFlight   *inFlight
	dispatcher *dispatcher
	settler    *settler
	hints      *jobs.Hints       // there may be jobs to claim
	offers     *jobs.TypedSignal // this process has stored some, and told nobody else
	newPool    loop.Signal       // to raise when a pool came up, or its plugin was replaced
	rules      func() *job.Rules
	pace       *jobs.Pace
	// drained says that no claim is under way, and that none follows while this worker is
	// drained.
	drained atomic.Bool

	// unanswered is when a claim last got no answer; zero if that was so long ago that
	// it cannot have any effect any more.
	unanswered time.Time
	// exhausted holds, by plan, the pools that had more slots than there were jobs.
	// Free slots alone are no reason to claim for them again.
	exhausted map[string]string
	// expected are job types that may have jobs nevertheless: an exhausted plan claims those
	// alone. again are those that will be expected at againAt.
	expected, again map[string]bool
	againAt         time.Time
	// hinted says that somebody has announced jobs since the last poll or other look.
	hinted bool
	// batches are the batch hints by plan: twice as many jobs as the last claim brought.
	batches map[string]int
	// known holds, by plugin, the pools that newPool was raised for.
	known map[string]string
	// bounded are the plugins that have types with bounds of their own.
	bounded  map[string]bool
	nextPoll time.Time
	// together is until when jobs may gather: they come one by one, and several in the
	// time of a claim.
	together time.Time
	// nextLook is when attempts may have waited too long.
	nextLook time.Time
	// alarm goes off when the first of these is due.
	alarm *time.Timer
	turn  int
}

func newClaimer(
	cfg Config, store Store, plugins Plugins, inFlight *inFlight, d *dispatcher, s *settler, hints *jobs.Hints, newPool loop.Signal,
	rules func() *job.Rules, pace *jobs.Pace,
) *claimer {
	c := &claimer{
		cfg: cfg, store: store, plugins: plugins, inFlight: inFlight, dispatcher: d, settler: s, hints: hints, newPool: newPool,
		rules: rules, pace: pace,
		batches: make(map[string]int), known: make(map[string]string), bounded: make(map[string]bool),
	}
	c.expectJobs()
	return c
}

// claimFunc claims up to limit jobs, and returns how many there were.
type claimFunc func(ctx context.Context, plan claimPlan, limit int) (int, error)

func (c *claimer) run(ctx context.Context, claim claimFunc) {
	c.offers = c.hints.Offers()
	defer c.hints.EndOffers()
	c.alarm = time.NewTimer(0)
	defer c.alarm.Stop()
	for ctx.Err() == nil {
		offered := c.offers.Take()
		c.expect(offered)
		wanted, err := c.round(ctx, claim)
		c.hints.Pass(c.left(offered))
		switch {
		case err != nil && ctx.Err() == nil:
			c.cfg.Log.Warn("claim failed; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
			c.expectJobs()
		case wanted == 0:
			c.wait(ctx)
			loop.Pause(ctx, time.Until(c.together))
		case wanted < c.cfg.Concurrency/4:
			loop.Pause(ctx, gatherFor)
		}
	}
}

// expectJobs forgets that there was nothing to claim.
func (c *claimer) expectJobs() {
	c.exhausted = make(map[string]string)
	c.expected, c.again = make(map[string]bool), make(map[string]bool)
	c.nextPoll = time.Now().Add(c.pace.Poll(job.RoleWorker))
}

// expect takes note of job types that may have jobs; of any if types is nil.
func (c *claimer) expect(types []string) {
	if types == nil {
		c.expectJobs()
	}
	for _, jobType := range types {
		c.expected[jobType] = true
	}
	c.hinted = c.hinted || types == nil || len(types) > 0
}

// left returns those of the types that others should claim as well: there may be more of their
// jobs than this worker takes, or it runs more handlers than it has processors.
func (c *claimer) left(types []string) []string {
	running, _ := c.inFlight.counts()
	if len(types) == 0 || running > stdruntime.GOMAXPROCS(0) {
		return types
	}
	taken := make(map[string]bool)
	for _, plan := range plansOf(c.plugins.Pools(), nil, 0, c.stopped()) {
		if c.exhausted[plan.key()] == identity(plan.pool) {
			for _, jobType := range plan.types {
				taken[jobType] = !c.expected[jobType]
			}
		}
	}
	return slices.DeleteFunc(types, func(jobType string) bool { return taken[jobType] })
}

// forget drops what is known of plans that there are not any more: when their plugin is there
// again, or their types are no longer stopped, they may have jobs.
func (c *claimer) forget(plans []claimPlan) {
	maps.DeleteFunc(c.exhausted, func(key, _ string) bool {
		return !slices.ContainsFunc(plans, func(plan claimPlan) bool { return plan.key() == key })
	})
	maps.DeleteFunc(c.expected, func(jobType string, _ bool) bool {
		return !slices.ContainsFunc(plans, func(plan claimPlan) bool { return slices.Contains(plan.types, jobType) })
	})
}

// due returns the plan without the types that need no claim, which may be all.
func (c *claimer) due(plan claimPlan) claimPlan {
	if c.exhausted[plan.key()] != identity(plan.pool) {
		return plan
	}
	var types []string
	if len(c.expected) > 0 {
		types = slices.DeleteFunc(slices.Clone(plan.types), func(jobType string) bool { return !c.expected[jobType] })
	}
	plan.types = types
	return plan
}

// exhaust takes note that a claim for the plan brought fewer jobs than it asked for.
func (c *claimer) exhaust(plan claimPlan, claimed int) {
	c.exhausted[plan.key()] = identity(plan.pool)
	// A claim for several types that brings none may have met the lock of another claimer, too.
	again := claimed > 0 || c.hinted && len(plan.types) > 1
	if again && len(c.again) == 0 {
		c.againAt = time.Now().Add(lookAgainAfter)
	}
	for _, jobType := range plan.types {
		delete(c.expected, jobType)
		if again {
			c.again[jobType] = true
		}
	}
}

// round claims once for every plan that wants jobs and may have them. It returns how
// many jobs are wanted after that which are known to wait.
func (c *claimer) round(ctx context.Context, claim claimFunc) (wanted int, err error) {
	if err := c.releaseUnanswered(ctx); err != nil {
		return 0, err
	}
	c.drained.Store(c.unanswered.IsZero() && c.rules().Draining(c.cfg.Worker.ID))
	waiting := c.dispatcher.waitingFor(c.bounded) // before the pools are asked: see plansOf
	pools := c.inTurn(c.pools())
	c.nextLook = c.dispatcher.releaseStale(pools)
	c.dispatcher.dispatch(ctx)
	var taken map[string]int // slots of plugins with several plans, since the pools were asked
	plans := plansOf(pools, waiting, c.turn, c.stopped())
	c.forget(plans)
	for _, plan := range plans {
		if c.known[plan.pool.Plugin] != identity(plan.pool) {
			c.known[plan.pool.Plugin] = identity(plan.pool)
			c.newPool.Raise()
		}
		plan.pool.Free = max(plan.pool.Free-taken[plan.pool.Plugin], 0)
		plan = c.due(plan)
		most := c.wanted(plan)
		if most == 0 {
			continue
		}
		limit := c.batchHint(plan, most)
		sent := time.Now()
		claimed, err := claim(ctx, plan, limit)
		if err != nil {
			c.unanswered = time.Now()
			return 0, err
		}
		if len(plan.pool.Room) > 0 {
			if taken == nil {
				taken = make(map[string]int)
			}
			taken[plan.pool.Plugin] += claimed
		}
		c.batches[plan.key()] = 2 * claimed
		switch {
		case claimed == limit: // there may be more, and other types meanwhile
			delete(c.exhausted, plan.key())
			continue
		case claimed == 0 && limit < most && len(plan.types) > 1:
			continue
		}
		c.exhaust(plan, claimed)
		if claimed > 1 {
			c.together = sent.Add(trickleFor)
		}
	}
	waiting = c.dispatcher.waitingFor(c.bounded)
	for _, plan := range plansOf(c.pools(), waiting, c.turn, c.stopped()) {
		wanted += c.wanted(c.due(plan))
	}
	return wanted, nil
}

// pools asks for the pools.
func (c *claimer) pools() []job.Pool {
	pools := c.plugins.Pools()
	for _, pool := range pools {
		if len(pool.Room) > 0 {
			c.bounded[pool.Plugin] = true
		}
	}
	return pools
}

// stopped returns what is not to be claimed now, because it is paused or this worker is
// drained.
func (c *claimer) stopped() func(plugin, jobType string) bool {
	rules := c.rules()
	draining := rules.Draining(c.cfg.Worker.ID)
	return func(plugin, jobType string) bool {
		_, paused := rules.Stopped(plugin, jobType)
		return draining || paused
	}
}

// wanted returns how many jobs to claim for a plan now. Finished attempts that wait to
// be settled count beyond twice the concurrency, so that a database that does not
// answer stops the claims too. Crash holds do not count: they would keep other plugins
// from working.
func (c *claimer) wanted(plan claimPlan) int {
	if len(plan.types) == 0 {
		return 0
	}
	running, held := c.inFlight.counts()
	most := 2*c.cfg.Concurrency + settleBatch - (held - c.dispatcher.count() - c.settler.crashHeld())
	if plan.bound != "" {
		most = min(most, plan.room)
	}
	return max(min(c.dispatcher.wanted(plan.pool, running), most, claimBatch), 0)
}

// batchHint returns how many of the jobs that a plan may have to ask for: about as many
// as there are likely to be. After a claim that brought none it is all of them: the
// most urgent ones may have been under the lock of another claimer, and those of
// another type wait behind them. A claim for one type passes over what is locked.
func (c *claimer) batchHint(plan claimPlan, most int) int {
	if likely := c.batches[plan.key()]; likely > 0 {
		return min(most, max(likely, minHint))
	}
	return most
}

// inTurn begins with another pool each time, so that none is always last when there is
// less room than there are slots.
func (c *claimer) inTurn(pools []job.Pool) []job.Pool {
	c.turn++
	if len(pools) < 2 {
		return pools
	}
	turn := c.turn % len(pools)
	return append(pools[turn:len(pools):len(pools)], pools[:turn]...)
}

// releaseUnanswered releases what an unanswered claim may have brought, for as long as
// the server may still work on it.
func (c *claimer) releaseUnanswered(ctx context.Context) error {
	if c.unanswered.IsZero() {
		return nil
	}
	try, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	released, err := c.store.ReleaseUnanswered(try, c.cfg.Worker.ID, c.inFlight.leases())
	if err != nil {
		c.unanswered = time.Now() // the claim may wait for a standby for as long as this does
		return err
	}
	if released > 0 {
		c.cfg.Log.Warn("released jobs whose claim was not answered", slog.Int("jobs", released))
	}
	if time.Since(c.unanswered) > unansweredFor {
		c.unanswered = time.Time{}
	}
	return nil
}

// wait returns when there may be something to claim: slots or pools changed, jobs were
// hinted at, a poll or another look is due, or some attempts have waited too long.
func (c *claimer) wait(ctx context.Context) {
	due := []time.Time{c.nextPoll, c.nextLook}
	if len(c.again) > 0 {
		due = append(due, c.againAt)
	}
	c.alarm.Reset(time.Until(slices.MinFunc(due, time.Time.Compare)))
	select {
	case <-c.plugins.Changed():
	case <-c.inFlight.freed:
	case <-c.offers.Woken(): // run takes them
	case <-c.hints.Ready().Woken():
		c.expect(c.hints.Ready().Take())
	case <-c.alarm.C:
		c.lookAgain(time.Now())
	case <-ctx.Done():
	}
}

// lookAgain expects the jobs for which it is time to look, though nobody has announced any.
func (c *claimer) lookAgain(now time.Time) {
	if len(c.again) > 0 && !now.Before(c.againAt) {
		maps.Copy(c.expected, c.again)
		clear(c.again)
		c.hinted = false
	}
	if !now.Before(c.nextPoll) {
		c.expectJobs()
		c.hinted = false
	}
}
