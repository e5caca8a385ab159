// Package loop has what a goroutine waits with in a loop: signals, alarms and pauses.
package loop

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Signal wakes one loop. Signals that arrive while the loop is busy merge into
// one.
type Signal chan struct{}

// NewSignal returns a signal that has not been raised.
func NewSignal() Signal { return make(Signal, 1) }

// Raise wakes the loop, now or when it waits next. It never blocks.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Wait returns true when the signal is raised or the time is over, and false
// when the context ends first.
func (s Signal) Wait(ctx context.Context, atMost time.Duration) bool {
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

// Alarm is a loop's wait that others can shorten.
type Alarm struct {
	sooner Signal

	mu   sync.Mutex
	next time.Time // when the loop looks again; far off while it works
}

// NewAlarm returns an alarm whose loop is at work.
func NewAlarm() *Alarm { return &Alarm{sooner: NewSignal(), next: time.Now().Add(time.Hour)} }

// In wakes the loop if it would sleep past the time given from now.
func (a *Alarm) In(after time.Duration) {
	a.mu.Lock()
	earlier := time.Now().Add(after).Before(a.next)
	a.mu.Unlock()
	if earlier {
		a.sooner.Raise()
	}
}

// Sleep waits for that long, or until In announces something earlier. Whatever In has
// announced since the last Sleep counts as earlier.
func (a *Alarm) Sleep(ctx context.Context, pause time.Duration) {
	a.looksAgain(pause)
	a.sooner.Wait(ctx, pause)
	a.looksAgain(time.Hour)
}

func (a *Alarm) looksAgain(in time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = time.Now().Add(in)
}

// Pause waits out the time unless the context ends first.
func Pause(ctx context.Context, d time.Duration) {
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

// Jittered spreads a period by a tenth to both sides, so that processes started
// together do not stay in step.
func Jittered(period time.Duration) time.Duration {
	return time.Duration(float64(period) * (0.9 + 0.2*rand.Float64()))
}
