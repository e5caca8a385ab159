package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/runtime/schedule"
)

const (
	// tickSchedules bounds the schedules of one round, and tickJobs their jobs.
	tickSchedules = 200
	tickJobs      = 500
	// tickWithin is how long a round checks jobs, and how long it waits for one check. It
	// holds locks meanwhile.
	tickWithin = time.Second
	// checkAgain is when to look again at a tick whose job could not be checked, and
	// tickAgain at a schedule whose ticks nobody knows: its zone may be missing here.
	checkAgain = 5 * time.Second
	tickAgain  = time.Minute
	// warnAgain is how often the same failure of a schedule is logged.
	warnAgain = time.Minute
	// maxTimings is how many timings are kept read, and maxWarned how many schedules are
	// known to fail.
	maxTimings = 20_000
	maxWarned  = 20_000
)

// ticker makes the jobs of schedules when their ticks are due. It runs in every
// process that maintains: each takes other schedules.
type ticker struct {
	cfg   Config
	store Store
	jobs  *jobs.Service

	// A round that was given up may still be deciding.
	mu    sync.Mutex
	known map[job.Timing]*schedule.Ticks

	// warned has the failures of schedules that were logged last.
	warned map[scheduleName]warning
}

type scheduleName struct{ tenant, name string }

type warning struct {
	failure string
	at      time.Time
}

func newTicker(cfg Config, store Store, service *jobs.Service) *ticker {
	return &ticker{cfg: cfg, store: store, jobs: service, known: make(map[job.Timing]*schedule.Ticks), warned: make(map[scheduleName]warning)}
}

func (t *ticker) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := t.tick(ctx)
		if err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("ticks of schedules could not be fired; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		t.jobs.Ticks.Sleep(ctx, pause)
	}
}

// tick fires what is due and returns how long to wait for the next tick that is known of now.
func (t *ticker) tick(ctx context.Context) (time.Duration, error) {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		in, due, err := t.store.NextTick(try)
		more := err == nil && due && in <= 0
		if more {
			more, err = t.round(try)
		}
		cancel()
		switch {
		case err != nil:
			return 0, err
		case more:
		default:
			return pauseUntil(in, due && in > 0), nil
		}
	}
	return untilWoken, nil
}

// round fires ticks of some schedules. It reports whether to look again at once: each
// schedule that it has looked at has moved on, or waits behind the others.
func (t *ticker) round(ctx context.Context) (more bool, err error) {
	began := time.Now()
	fired, err := t.store.FireSchedules(ctx, tickSchedules, func(due []job.DueSchedule, now time.Time) []job.Firing {
		until := time.Now().Add(tickWithin)
		var firings []job.Firing
		for i := range due {
			if i > 0 && time.Now().After(until) {
				break
			}
			firings = append(firings, t.decide(ctx, due[i], now, until, max(tickJobs/len(due), 1)))
		}
		return firings
	})
	t.jobs.Metrics.Batch(metrics.OpTick, len(fired), began, err)
	if err != nil {
		return false, err
	}
	t.jobs.Fired(fired)
	for i := range fired {
		t.report(&fired[i])
	}
	return len(fired) > 0, nil
}

// decide says what to do with the due ticks of a schedule. Whatever is wrong with it, the
// schedule moves on, unless another try may go better. When the time is over, the ticks that
// are left come after those of other schedules; at least one gets its turn.
func (t *ticker) decide(ctx context.Context, due job.DueSchedule, now, until time.Time, most int) job.Firing {
	ticks, err := t.ticksOf(due.Timing)
	if err != nil {
		return job.Firing{Next: due.NextAt, RetryAt: now.Add(tickAgain), Error: err.Error()}
	}
	round := ticks.Due(due.NextAt, now, due.CatchUp, due.CatchUpWindow, most)
	firing := job.Firing{Next: round.Next, Missed: round.Missed}
	if !round.Next.After(now) {
		firing.RetryAt = now
	}
	fire := round.Fire
	waits := due.LastJobOpen && !due.LastJobRunning
	switch {
	case len(fire) == 0:
		return firing
	case due.Overlap == job.OverlapSkip && due.LastJobOpen, due.Overlap == job.OverlapQueue && waits:
		fire = nil
	case due.Overlap == job.OverlapSkip, due.Overlap == job.OverlapQueue:
		fire = fire[:1]
	case due.Overlap == job.OverlapCancelPrevious:
		fire = fire[len(fire)-1:]
	}
	firing.Skipped = int64(len(round.Fire) - len(fire))
	for i, tick := range fire {
		if i > 0 && time.Now().After(until) {
			firing.Next, firing.RetryAt = tick, now
			return firing
		}
		made, transient, err := t.accept(ctx, due.Schedule, tick)
		switch {
		case transient:
			// What follows waits for this tick.
			firing.Next, firing.RetryAt = tick, now.Add(checkAgain)
			if due.Overlap != job.OverlapCancelPrevious { // its tick is the last
				firing.Skipped = 0
			}
			firing.Error = fmt.Sprintf("%s: %s", tick.Format(time.RFC3339), jobs.Refusal(err))
			return firing
		case err != nil:
			firing.Failed++
			firing.Error = fmt.Sprintf("%s: %s", tick.Format(time.RFC3339), jobs.Refusal(err))
		default:
			firing.Jobs = append(firing.Jobs, made)
			firing.CancelLast = due.Overlap == job.OverlapCancelPrevious && due.LastJobOpen
		}
	}
	return firing
}

// accept makes the submission of a tick. A check that cannot begin soon is given up.
func (t *ticker) accept(ctx context.Context, of job.Schedule, tick time.Time) (made job.TickJob, transient bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tickWithin)
	defer cancel()
	return t.jobs.AcceptTick(ctx, of, tick)
}

// ticksOf reads a timing, unless it was read before.
func (t *ticker) ticksOf(timing job.Timing) (*schedule.Ticks, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ticks, known := t.known[timing]; known {
		return ticks, nil
	}
	ticks, faults := schedule.New(timing)
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s %s", faults[0].Member, faults[0].Reason)
	}
	if len(t.known) >= maxTimings {
		clear(t.known)
	}
	t.known[timing] = ticks
	return ticks, nil
}

// report measures and logs what became of a schedule's ticks.
func (t *ticker) report(fired *job.Fired) {
	counts, failure := fired.Counts()
	m := t.jobs.Metrics
	m.Ticks(metrics.TickFired, counts.Fired)
	m.Ticks(metrics.TickSkipped, counts.Skipped)
	m.Ticks(metrics.TickMissed, counts.Missed)
	m.Ticks(metrics.TickFailed, counts.Failed)
	for i, made := range fired.Firing.Jobs {
		if fired.Results[i].Err == nil && !fired.Results[i].Receipt.Replayed {
			m.TickLag(fired.Results[i].Receipt.CreatedAt.Sub(made.Tick))
		}
	}
	if t.warns(fired, failure) {
		t.cfg.Log.Warn("a tick of a schedule could make no job", slog.String("tenant", fired.Tenant), slog.String("schedule", fired.Name),
			slog.String("error", failure))
	}
	if counts.Missed > 0 {
		t.cfg.Log.Warn("ticks of a schedule were missed", slog.String("tenant", fired.Tenant), slog.String("schedule", fired.Name),
			slog.Int64("ticks", counts.Missed))
	}
}

// warns reports whether to log the failure of a schedule: if it is another than before, or
// was logged long ago.
func (t *ticker) warns(fired *job.Fired, failure string) bool {
	of := scheduleName{fired.Tenant, fired.Name}
	if failure == "" {
		if len(fired.Results) > 0 {
			delete(t.warned, of)
		}
		return false
	}
	if tick, reason, found := strings.Cut(failure, ": "); found {
		if _, err := time.Parse(time.RFC3339, tick); err == nil {
			failure = reason // the tick is always another
		}
	}
	last, known := t.warned[of]
	if known && last.failure == failure && time.Since(last.at) < warnAgain {
		return false
	}
	if len(t.warned) >= maxWarned {
		clear(t.warned)
	}
	t.warned[of] = warning{failure, time.Now()}
	return true
}
