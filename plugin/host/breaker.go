package host

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// breaker delays the launches of one generation. It allows one launch at a time, and
// makes launches wait for a backoff after each failure. So the number of processes does
// not change how often a plugin that dies at once is launched.
type breaker struct {
	backoff Backoff
	// turn is a semaphore of one, for the launch under way.
	turn chan struct{}

	mu       sync.Mutex
	failures int
	next     time.Time
}

func newBreaker(backoff Backoff) *breaker {
	return &breaker{backoff: backoff, turn: make(chan struct{}, 1)}
}

// admit waits for a turn to launch. The caller records how the launch went, and then
// calls release. If the context ends first, admit returns its error.
func (b *breaker) admit(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mu.Lock()
	next := b.next
	b.mu.Unlock()
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		b.release()
		return ctx.Err()
	}
	return nil
}

func (b *breaker) release() { <-b.turn }

// fail records that a launch failed or a process died.
func (b *breaker) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.holdLocked()
}

// refuse records a failure that another launch would probably repeat: the breaker opens
// at once.
func (b *breaker) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = max(b.failures+1, b.backoff.BreakAfter)
	b.holdLocked()
}

// pause records a death that was not the plugin's fault.
func (b *breaker) pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = time.Now().Add(b.backoff.Min)
}

// reset forgets the failures.
func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
}

func (b *breaker) broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= b.backoff.BreakAfter
}

// describe returns what operators see of the breaker; nil while nothing has failed.
func (b *breaker) describe() *v1.PluginBreaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return nil
	}
	d := &v1.PluginBreaker{Failures: b.failures, Open: b.failures >= b.backoff.BreakAfter}
	if time.Now().Before(b.next) {
		d.NextLaunchAt = new(b.next.UTC())
	}
	return d
}

// holding reports whether a launch would have to wait.
func (b *breaker) holding() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.next)
}

func (b *breaker) holdLocked() {
	delay := b.backoff.Max
	// The exponent is clamped before the shift: 2^62 ns is beyond any cap.
	if doublings := b.failures - 1; doublings < 62 && b.backoff.Min < b.backoff.Max>>doublings {
		delay = b.backoff.Min << doublings
	}
	jitter := 0.9 + 0.2*rand.Float64()
	b.next = time.Now().Add(time.Duration(float64(delay) * jitter))
}
