package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// untilWoken is how long a loop waits that the lookout wakes. Nothing depends on it.
	untilWoken = time.Hour
	// lookAhead is how much further a look sees than to the next one, which may be late.
	lookAhead = time.Second
)

// pauseUntil is how long such a loop waits for something that is known to be due in a while, if
// anything is.
func pauseUntil(in time.Duration, known bool) time.Duration {
	if !known {
		return untilWoken
	}
	return min(max(in, time.Millisecond), untilWoken)
}

// lookout finds work that no hint announced, for all loops that would otherwise each poll: one
// statement says that there is nothing for any of them. If it fails, they look for themselves. It
// runs in every process that maintains.
type lookout struct {
	cfg   Config
	store Store
	jobs  *jobs.Service

	admits, follows loop.Signal
}

func (l *lookout) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := l.jobs.Pace.Poll(job.RoleMaintenance)
		if err := l.look(ctx, pause); err != nil && ctx.Err() == nil {
			l.cfg.Log.Warn("looking for work that no hint announced failed; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		loop.Pause(ctx, pause)
	}
}

// look wakes the loops that have something to do before the next look, which is after the time
// given.
func (l *lookout) look(ctx context.Context, next time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	seen, err := l.store.Outlook(ctx, next+lookAhead)
	l.jobs.Metrics.Failed(metrics.OpLook, err)
	if err != nil {
		now := new(time.Duration)
		seen = job.Outlook{Following: true, Admitting: true, Due: now, Expiry: now, Tick: now, Operation: now}
	}
	if seen.Following {
		l.follows.Raise()
	}
	if seen.Admitting {
		l.admits.Raise()
	}
	for _, is := range []struct {
		in    *time.Duration
		alarm *loop.Alarm
	}{{seen.Due, l.jobs.Due}, {seen.Expiry, l.jobs.Expiry}, {seen.Tick, l.jobs.Ticks}, {seen.Operation, l.jobs.Operating}} {
		if is.in != nil {
			is.alarm.In(*is.in)
		}
	}
	return err
}
