package plugin

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// leased is a session whose handlers note when they were warned, and do not stop.
type leased struct {
	*session
	release chan struct{}

	mu              sync.Mutex
	warned, expired time.Time // zero while that has not happened
}

// holding begins an attempt for each lease. It belongs into a bubble of synctest.
func holding(t *testing.T, leases ...time.Duration) *leased {
	t.Helper()
	l := &leased{release: make(chan struct{})}
	h := Handle("HOLD", func(ctx context.Context, _ Job[any]) error {
		go func() {
			<-ctx.Done()
			l.note(&l.warned)
			require.ErrorIs(t, context.Cause(ctx), ErrLeaseLost)
		}()
		<-l.release
		l.session.lose(ErrLeaseLost)
		return nil
	})
	l.session = newSession(map[string]Handler{"HOLD": h}, limitsOf(nil), func(string) { l.note(&l.expired) })
	for i, lease := range leases {
		l.begin(&handlerv1.Start{
			Handle: uint64(i + 1), JobType: "HOLD", Payload: []byte("null"), TimeoutMs: math.MaxUint64, LeaseMs: uint64(lease.Milliseconds()),
		})
	}
	synctest.Wait()
	return l
}

func (l *leased) note(moment *time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if moment.IsZero() {
		*moment = time.Now()
	}
}

// since returns how long after a time the first attempt was warned, and the process exited.
func (l *leased) since(then time.Time) (warned, expired time.Duration) {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warned.Sub(then), l.expired.Sub(then)
}

// requireNothing requires that nobody was warned.
func (l *leased) requireNothing(t *testing.T) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Zero(t, l.warned)
	require.Zero(t, l.expired)
}

// end ends all attempts.
func (l *leased) end() {
	close(l.release)
	synctest.Wait()
	l.pool.close()
	l.running.Wait()
}

func TestALeaseWarnsWithASixthLeftAndThenExpires(t *testing.T) {
	for lease, margin := range map[time.Duration]time.Duration{
		600 * time.Millisecond: 100 * time.Millisecond,
		30 * time.Second:       5 * time.Second,
		time.Hour:              5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			l := holding(t, lease)
			time.Sleep(2 * lease)
			warned, expired := l.since(begun)
			require.Equal(t, lease-margin, warned)
			require.Equal(t, lease, expired)
			l.end()
		})
	}
}

func TestAnExtendedLeaseGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		l := holding(t, 30*time.Second)
		for range 100 {
			time.Sleep(10 * time.Second)
			l.extend([]uint64{1}, 30*time.Second)
		}
		l.requireNothing(t)
		time.Sleep(26 * time.Second)
		warned, _ := l.since(begun)
		require.Equal(t, 1025*time.Second, warned)
		l.extend([]uint64{1}, time.Minute) // late, but the lease is held: there is time again
		time.Sleep(time.Hour)
		_, expired := l.since(begun)
		require.Equal(t, 1086*time.Second, expired)
		l.end()
	})
}

// One timer serves all leases, whatever their order.
func TestEachLeaseEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		l := holding(t, time.Hour, 30*time.Second, 10*time.Minute)
		l.extend([]uint64{2, 99}, 20*time.Minute)
		time.Sleep(2 * time.Hour)
		warned, expired := l.since(begun)
		require.Equal(t, 10*time.Minute-5*time.Second, warned)
		require.Equal(t, 10*time.Minute, expired)
		l.end()
	})
}

func TestAnExtensionThatCrossesTheTimerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := holding(t, 30*time.Second)
		l.checkLeases() // the timer of an earlier lease, come late
		l.requireNothing(t)
		l.end()
	})
}

func TestALeaseThatRanOutWhileTheProcessWasStoppedExpiresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := holding(t, 30*time.Second)
		l.session.mu.Lock()
		l.attempts[1].lease.until = time.Now().Add(-time.Second)
		l.session.mu.Unlock()
		l.checkLeases()
		_, expired := l.since(time.Now())
		require.Zero(t, expired)
		l.mu.Lock()
		require.Zero(t, l.warned)
		l.mu.Unlock()
		l.end()
	})
}

func TestTheLeaseOfAnAttemptThatHasEndedIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exited := false
		s := newSession(map[string]Handler{"NOTHING": Handle("NOTHING", nothing)}, limitsOf(nil), func(string) { exited = true })
		s.begin(&handlerv1.Start{Handle: 1, JobType: "NOTHING", Payload: []byte("null"), TimeoutMs: 60_000, LeaseMs: 1000})
		synctest.Wait()
		s.extend([]uint64{1}, time.Second)
		s.checkLeases()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, exited)
		require.Empty(t, s.attempts)
		s.pool.close()
		s.running.Wait()
	})
}

func TestATimeTooLongForGoIsTheLongest(t *testing.T) {
	require.Equal(t, 1500*time.Millisecond, fromMillis(1500))
	require.Greater(t, fromMillis(math.MaxUint64), 100*365*24*time.Hour)
}
