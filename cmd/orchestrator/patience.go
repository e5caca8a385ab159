package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// firstPause and longestPause bound the pause between two tries. It doubles each
	// time, less up to half of it at random, so that many programs do not try at the
	// same moment.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
	// remindEvery is how often the log repeats that the program waits.
	remindEvery = 30 * time.Second
)

// errNothingBegun says that a signal stopped the program while it waited for its
// database, before it had started anything.
var errNothingBegun = errors.New("stopped while waiting for the database")

// patience is how to wait for a database that is not usable yet.
type patience struct {
	// bound is how long after the first try a new one may begin; 0 means one try.
	bound time.Duration
	// setting names the bound, for errors.
	setting string
	log     *slog.Logger
	// waiting is called after each try that is not the last.
	waiting func()
}

// until calls reach, then begin, until both succeed. It tries again after
// job.ErrUnavailable and returns any other error at once. After the bound it returns
// the last error. When ctx ends outside begin, it returns errNothingBegun.
func (p patience) until(ctx context.Context, reach, begin func(context.Context) error) error {
	first := time.Now()
	var reminded time.Time
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := reach(ctx)
		switch {
		case err == nil:
			err = begin(ctx)
		case ctx.Err() != nil:
			return errNothingBegun
		}
		waited := time.Since(first)
		switch {
		case err == nil && !reminded.IsZero():
			p.log.Info("the database is available", "waited", waited.Round(time.Millisecond))
			return nil
		case err == nil, ctx.Err() != nil, p.bound == 0, !errors.Is(err, job.ErrUnavailable):
			return err
		case waited >= p.bound:
			return fmt.Errorf("gave up on the database after %s (%s): %w", waited.Round(time.Second), p.setting, err)
		}
		if time.Since(reminded) >= remindEvery {
			reminded = time.Now()
			p.log.Warn("waiting for the database", "error", err,
				"waited", waited.Round(time.Millisecond), "give_up_in", (p.bound - waited).Round(time.Second))
		}
		p.waiting()
		if !sleep(ctx, min(pause-rand.N(pause/2), p.bound-waited)) {
			return errNothingBegun
		}
	}
}

// sleep reports whether it slept to the end; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	loop.Pause(ctx, d)
	return ctx.Err() == nil
}
