package runtime

import (
	"context"
	"math/rand/v2"
	"time"
)

// signal wakes one loop. Signals that arrive while the loop is busy merge
// into one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// wait returns when the signal is raised, the time is over, or the context
// ends; in the last case it returns false.
func (s signal) wait(ctx context.Context, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-s:
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pauseFor waits out the time unless the context ends first.
func pauseFor(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jittered spreads a period by a tenth to both sides, so that many processes
// started together do not stay in step.
func jittered(period time.Duration) time.Duration {
	return time.Duration(float64(period) * (0.9 + 0.2*rand.Float64()))
}
