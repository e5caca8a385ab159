package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLaunchesBackOffAndRunOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second, BreakAfter: 5, StableAfter: time.Second})
		launchAfter := func(want time.Duration) {
			t.Helper()
			begun := time.Now()
			require.NoError(t, b.admit(t.Context()))
			require.InDelta(t, want.Seconds(), time.Since(begun).Seconds(), 0.11*want.Seconds())
		}
		launchAfter(0)
		for failures, wait := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
			require.Equal(t, failures >= 5, b.broken())
			b.fail()
			b.release()
			launchAfter(wait * time.Millisecond)
		}

		// A second launch waits for its turn.
		waiting, cancel := context.WithCancel(t.Context())
		refused := make(chan error)
		go func() { refused <- b.admit(waiting) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-refused, context.Canceled)

		b.reset()
		require.False(t, b.broken())
		b.pause()
		b.release()
		launchAfter(100 * time.Millisecond)
		b.refuse()
		require.True(t, b.broken())
		b.release()

		// A launch that gives up waiting releases its turn.
		ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.admit(ended), context.DeadlineExceeded)
		launchAfter(1600*time.Millisecond - time.Millisecond)
		b.release()
		for range 1000 {
			b.fail()
		}
		launchAfter(30 * time.Second)
	})
}
