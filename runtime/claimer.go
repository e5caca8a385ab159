package runtime

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// claimBatch bounds one claim.
const claimBatch = 500

// claimTimeout bounds one try to claim. unansweredFor is how long the server
// may be at work on a claim that got no answer: longer than any statement may
// take, but for its wait for a standby.
const (
	claimTimeout  = 5 * time.Second
	unansweredFor = 20 * time.Second
)

// gatherFor is how long the claimer lets free slots gather while there is a
// backlog, rather than claim a job for each slot by itself. A claim for one
// slot costs about as much as a claim for twenty.
const gatherFor = time.Millisecond

// leastBite is how many jobs a claim asks for where the last one brought few. Asking
// for more than there are is not free: each comes with an id for its lease.
const leastBite = 16

// trickleFor is how long after a claim the next one waits while jobs trickle in
// faster than they can be claimed one by one. A lone job is claimed at once.
const trickleFor = 2 * time.Millisecond

// lookAgainAfter is when the claimer looks once more after a claim that
// brought fewer jobs than it asked for, but some: others may have been under
// another claimer's lock, or on their way into the list.
const lookAgainAfter = 100 * time.Millisecond

// claimer asks for as many jobs as there are free slots, and for some ahead, of
// the types that live plugins serve, and has them line up for their plugin.
type claimer struct {
	store    Store
	handlers Plugins
	held     *holdings
	lineup   *lineup
	settler  *settler
	log      *slog.Logger
	cfg      Config
	woken    signal
	newPool  func() // a pool came up, or its plugin was replaced

	telemetry *telemetry
	spans     *spans.Tracer

	// unanswered is when a claim last got no answer; zero if that is so long
	// ago that it cannot have any effect any more.
	unanswered time.Time
	// exhausted holds, by share, the pools that had more slots than there
	// were jobs. Free slots alone are no reason to claim for them again.
	exhausted map[string]string
	// bites holds, by share, twice as many jobs as the last claim has brought.
	bites map[string]int
	// known holds, by plugin, the pools that newPool was called for.
	known map[string]string
	// bounded are the plugins that have types with bounds of their own.
	bounded  map[string]bool
	nextPoll time.Time
	// together is until when jobs are left to come together: they come one by
	// one, and several in the time of a claim.
	together time.Time
	// nextLook is when attempts may have lined up for too long.
	nextLook time.Time
	turn     int
}

func (c *claimer) run(ctx context.Context) {
	c.expectJobs()
	c.known, c.bites, c.bounded = make(map[string]string), make(map[string]int), make(map[string]bool)
	for ctx.Err() == nil {
		wanted, err := c.round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			c.log.Warn("claim failed; trying again", slog.Any("error", err))
			pauseFor(ctx, jittered(time.Second))
			c.expectJobs()
		case wanted == 0:
			c.wait(ctx)
			pauseFor(ctx, time.Until(c.together))
		case wanted < c.cfg.Concurrency/4:
			pauseFor(ctx, gatherFor)
		}
	}
}

// expectJobs forgets that there was nothing to claim.
func (c *claimer) expectJobs() {
	c.exhausted = make(map[string]string)
	c.nextPoll = time.Now().Add(jittered(c.cfg.PollInterval))
}

// round claims once for every share of a pool that wants jobs and may have them.
// It returns how many are wanted after that which are known to wait.
func (c *claimer) round(ctx context.Context) (wanted int, err error) {
	if err := c.disown(ctx); err != nil {
		return 0, err
	}
	var taken map[string]int // slots of plugins with several shares, since the pools were asked
	for _, s := range c.shares(true) {
		if c.known[s.pool.Plugin] != identity(s.pool) {
			c.known[s.pool.Plugin] = identity(s.pool)
			c.newPool()
		}
		s.pool.Free = max(s.pool.Free-taken[s.pool.Plugin], 0)
		most := c.wanted(s)
		if most == 0 {
			continue
		}
		limit := c.bite(s, most)
		sent := time.Now()
		claimed, err := c.claim(ctx, s, limit)
		if err != nil {
			c.unanswered = time.Now()
			return 0, err
		}
		if len(s.pool.Room) > 0 {
			if taken == nil {
				taken = make(map[string]int)
			}
			taken[s.pool.Plugin] += claimed
		}
		c.bites[s.key()] = 2 * claimed
		if claimed == limit || claimed == 0 && limit < most {
			continue // there may be more
		}
		c.exhausted[s.key()] = identity(s.pool)
		if claimed > 1 {
			c.together = sent.Add(trickleFor)
		}
		if soon := time.Now().Add(lookAgainAfter); claimed > 0 && soon.Before(c.nextPoll) {
			c.nextPoll = soon
		}
	}
	for _, s := range c.shares(false) {
		wanted += c.wanted(s)
	}
	return wanted, nil
}

// shares asks for the pools and cuts them into shares, and before a round has
// attempts disperse whose pool is gone.
func (c *claimer) shares(beforeRound bool) []share {
	waiting := c.lineup.waitingOf(c.bounded)
	pools := c.handlers.Pools()
	for _, pool := range pools {
		if len(pool.Room) > 0 {
			c.bounded[pool.Plugin] = true
		}
	}
	if beforeRound {
		c.nextLook = c.lineup.disperse(pools)
		c.lineup.advance()
		pools = c.inTurn(pools)
	}
	return sharesOf(pools, waiting, c.turn)
}

// wanted returns how many jobs to claim for a share now. Finished attempts that
// wait to be settled count beyond twice the concurrency, so that a database
// that does not answer stops the claims too. Leases that are left to run out do
// not count: they would keep other plugins from working.
func (c *claimer) wanted(s share) int {
	if c.exhausted[s.key()] == identity(s.pool) {
		return 0
	}
	running, held := c.held.counts()
	most := 2*c.cfg.Concurrency + settleBatch - (held - c.lineup.count() - c.settler.lapsing.count())
	if s.bound != "" {
		most = min(most, s.room)
	}
	return max(min(c.lineup.wanted(s.pool, running), most, claimBatch), 0)
}

// bite returns how many of the jobs that a share may have are asked for at once:
// about as many as there are likely to be. After a claim that has brought none
// it is all of them: the most urgent ones may have been under the lock of another
// claimer, and those of another type wait behind them.
func (c *claimer) bite(s share, most int) int {
	if likely := c.bites[s.key()]; likely > 0 {
		return min(most, max(likely, leastBite))
	}
	return most
}

// inTurn begins with another pool each time, so that none is always last when
// there is less room than there are slots.
func (c *claimer) inTurn(pools []job.Pool) []job.Pool {
	c.turn++
	if len(pools) < 2 {
		return pools
	}
	turn := c.turn % len(pools)
	return append(pools[turn:len(pools):len(pools)], pools[:turn]...)
}

// identity tells a pool from what it was before its plugin was replaced.
func identity(pool job.Pool) string {
	return pool.Version + "\n" + strings.Join(pool.Types, "\n")
}

// disown lets go of what a claim may have brought us whose answer was lost,
// for as long as the server may still be at work on it.
func (c *claimer) disown(ctx context.Context) error {
	if c.unanswered.IsZero() {
		return nil
	}
	try, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	disowned, err := c.store.ReleaseUnanswered(try, c.cfg.Worker.ID, c.held.leases())
	if err != nil {
		c.unanswered = time.Now() // the claim may wait for a standby for as long as this does
		return err
	}
	if disowned > 0 {
		c.log.Warn("let go of jobs whose claim was not answered", slog.Int("jobs", disowned))
	}
	if time.Since(c.unanswered) > unansweredFor {
		c.unanswered = time.Time{}
	}
	return nil
}

// claim claims up to limit jobs for the share and has them line up for its pool.
// It returns how many there were.
func (c *claimer) claim(ctx context.Context, s share, limit int) (int, error) {
	// Once sent, a claim is seen through: its answer says what we now own.
	try, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	sent := time.Now()
	claimed, err := c.store.Claim(try, c.cfg.Worker.ID, s.types, limit, c.cfg.Lease)
	c.telemetry.batch(opClaim, len(claimed), sent, err)
	if err != nil {
		return 0, err
	}
	c.telemetry.claimed(claimed)
	attempts := make([]*attempt, len(claimed))
	answered := time.Now()
	for i, one := range claimed {
		told := c.spans.Claimed(&one, c.cfg.Worker.ID, sent, answered) // and has it carry its context
		attempts[i] = newAttempt(one, s.pool, sent.Add(c.cfg.Lease), c.cfg.KillGrace, c.settler)
		attempts[i].spans = told
		c.held.add(attempts[i])
	}
	c.lineup.join(s.pool, attempts)
	return len(claimed), nil
}

// wait returns when there may be something to claim: slots or pools changed,
// jobs were hinted at, the poll is due, or some have lined up for long.
func (c *claimer) wait(ctx context.Context) {
	poll := time.NewTimer(time.Until(c.nextPoll))
	defer poll.Stop()
	look := time.NewTimer(time.Until(c.nextLook))
	defer look.Stop()
	select {
	case <-c.handlers.Changed():
	case <-c.held.freed:
	case <-look.C:
	case <-c.woken:
		c.expectJobs()
	case <-poll.C:
		c.expectJobs()
	case <-ctx.Done():
	}
}
