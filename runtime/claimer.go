package runtime

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// claimBatch bounds one claim.
const claimBatch = 500

// claimTimeout bounds one try to claim. unansweredFor is how long the server
// may be at work on a claim that got no answer: longer than any statement may
// take.
const (
	claimTimeout  = 5 * time.Second
	unansweredFor = 20 * time.Second
)

// gatherFor is how long the claimer lets free slots gather while there is a
// backlog, rather than claim a job for each slot by itself. A claim for one
// slot costs about as much as a claim for twenty.
const gatherFor = time.Millisecond

// refusedPause is how long a plugin rests that had no slot after all: most
// likely its process has just died, and takes about so long to be back.
const refusedPause = 100 * time.Millisecond

// lookAgainAfter is when the claimer looks once more after a claim that
// brought fewer jobs than it asked for, but some: others may have been under
// another claimer's lock, or on their way into the list.
const lookAgainAfter = 100 * time.Millisecond

// claimer asks for as many jobs as there are free slots, of the types that
// live plugins serve, and hands each to its plugin.
type claimer struct {
	store    Store
	handlers Handlers
	held     *holdings
	settler  *settler
	log      *slog.Logger
	cfg      Config
	woken    signal
	newPool  func() // a pool came up, or its plugin was replaced

	telemetry *telemetry

	// unanswered is when a claim last got no answer; zero if that is so long
	// ago that it cannot have any effect any more.
	unanswered time.Time
	// exhausted holds, by plugin, the pools that had more slots than there
	// were jobs. Free slots alone are no reason to claim for them again.
	exhausted map[string]string
	// known holds, by plugin, the pools that newPool was called for.
	known map[string]string
	// resting holds, by plugin, until when no job is claimed for it, because
	// it refused one that it had said it had a slot for.
	resting  map[string]time.Time
	nextPoll time.Time
	turn     int
}

func (c *claimer) run(ctx context.Context) {
	c.expectJobs()
	c.known = make(map[string]string)
	c.resting = make(map[string]time.Time)
	for ctx.Err() == nil {
		free, err := c.round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			c.log.Warn("claim failed; trying again", slog.Any("error", err))
			pauseFor(ctx, jittered(time.Second))
			c.expectJobs()
		case free == 0:
			c.wait(ctx)
		case free < c.cfg.Concurrency/4:
			pauseFor(ctx, gatherFor)
		}
	}
}

// expectJobs forgets that there was nothing to claim.
func (c *claimer) expectJobs() {
	c.exhausted = make(map[string]string)
	c.nextPoll = time.Now().Add(jittered(c.cfg.Poll))
}

// round claims once for every pool that has free slots and may have jobs. It
// returns how many slots there are free for jobs that are known to wait.
func (c *claimer) round(ctx context.Context) (free int, err error) {
	if err := c.disown(ctx); err != nil {
		return 0, err
	}
	for _, pool := range c.inTurn(c.handlers.Pools()) {
		if c.known[pool.Plugin] != identity(pool) {
			c.known[pool.Plugin] = identity(pool)
			c.newPool()
		}
		limit := min(pool.Free, c.room(), claimBatch)
		if limit <= 0 || time.Now().Before(c.resting[pool.Plugin]) || c.exhausted[pool.Plugin] == identity(pool) {
			continue
		}
		claimed, err := c.claim(ctx, pool, limit)
		if err != nil {
			c.unanswered = time.Now()
			return 0, err
		}
		if claimed < limit {
			c.exhausted[pool.Plugin] = identity(pool)
		}
		if soon := time.Now().Add(lookAgainAfter); 0 < claimed && claimed < limit && soon.Before(c.nextPoll) {
			c.nextPoll = soon
		}
	}
	for _, pool := range c.handlers.Pools() {
		if c.exhausted[pool.Plugin] != identity(pool) && time.Now().After(c.resting[pool.Plugin]) {
			free += pool.Free
		}
	}
	return max(min(free, c.room()), 0), nil
}

// inTurn begins with another pool each time, so that none is always last when
// there is less room than there are slots.
func (c *claimer) inTurn(pools []job.Pool) []job.Pool {
	if len(pools) < 2 {
		return pools
	}
	c.turn = (c.turn + 1) % len(pools)
	return append(pools[c.turn:len(pools):len(pools)], pools[:c.turn]...)
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
	disowned, err := c.store.Disown(try, c.cfg.Worker.ID, c.held.leases())
	if err != nil {
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

// claim claims up to limit jobs for the pool and hands them to it. It returns
// how many there were.
func (c *claimer) claim(ctx context.Context, pool job.Pool, limit int) (int, error) {
	// Once sent, a claim is seen through: its answer says what we now own.
	try, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	sent := time.Now()
	claimed, err := c.store.Claim(try, c.cfg.Worker.ID, pool.Types, limit, c.cfg.Lease)
	c.telemetry.batch(opClaim, len(claimed), sent, err)
	if err != nil {
		return 0, err
	}
	c.telemetry.claimed(claimed)
	for _, one := range claimed {
		c.dispatch(one, pool, sent.Add(c.cfg.Lease))
	}
	return len(claimed), nil
}

// room is how many more jobs this worker may hold. Finished attempts that
// wait to be settled count beyond twice the concurrency, so that a database
// that does not answer stops the claims too.
func (c *claimer) room() int {
	running, held := c.held.counts()
	return min(c.cfg.Concurrency-running, 2*c.cfg.Concurrency+settleBatch-held)
}

// dispatch hands a claimed job to its plugin. If the plugin cannot take it any
// more it gives the job back, and the plugin a rest, or the two would go round
// and round.
func (c *claimer) dispatch(claimed job.Claimed, pool job.Pool, provenUntil time.Time) {
	a := newAttempt(claimed, pool, provenUntil, c.cfg.KillGrace, c.settler)
	c.held.add(a)
	run, err := c.handlers.Start(pool.Plugin, job.Assignment{
		Claimed: claimed, LeaseFor: time.Until(provenUntil),
	}, a)
	if err != nil {
		a.Finished(job.Outcome{Kind: job.GivenBack, Code: "no_slot", Message: err.Error()})
		c.resting[pool.Plugin] = time.Now().Add(refusedPause)
		return
	}
	a.started(run)
}

// wait returns when there may be something to claim: slots or pools changed,
// jobs were hinted at, the poll is due, or a plugin has rested.
func (c *claimer) wait(ctx context.Context) {
	next := c.nextPoll
	for plugin, rested := range c.resting {
		// Also when it has rested by now: the last round may have passed it by.
		if rested.Before(next) {
			next = rested
		}
		if time.Now().After(rested) {
			delete(c.resting, plugin)
		}
	}
	poll := time.NewTimer(time.Until(next))
	defer poll.Stop()
	select {
	case <-c.handlers.Changed():
	case <-c.held.freed:
	case <-c.woken:
		c.expectJobs()
	case <-poll.C:
		c.expectJobs()
	case <-ctx.Done():
	}
}
