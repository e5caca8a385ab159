package plugin

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// watched is a lease that notes when it warned and expired.
func watched() (l *lease, warned, expired *instant) {
	warned, expired = new(instant), new(instant)
	return &lease{warn: warned.now, expire: expired.now}, warned, expired
}

// instant is when something happened; zero while it has not.
type instant struct {
	mu sync.Mutex
	at time.Time
}

func (i *instant) now() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.at = time.Now()
}

func (i *instant) get() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.at
}

func TestALeaseWarnsWithASixthLeftAndThenExpires(t *testing.T) {
	for lease, margin := range map[time.Duration]time.Duration{
		600 * time.Millisecond: 100 * time.Millisecond,
		30 * time.Second:       5 * time.Second,
		time.Hour:              5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			l, warned, expired := watched()
			l.extend(lease)
			time.Sleep(2 * lease)
			synctest.Wait()
			require.Equal(t, lease-margin, warned.get().Sub(begun))
			require.Equal(t, lease, expired.get().Sub(begun))
		})
	}
}

func TestAnExtendedLeaseGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		l, warned, expired := watched()
		l.extend(30 * time.Second)
		for range 100 {
			time.Sleep(10 * time.Second)
			l.extend(30 * time.Second)
		}
		synctest.Wait()
		require.Zero(t, warned.get())
		time.Sleep(26 * time.Second)
		synctest.Wait()
		require.Equal(t, 1025*time.Second, warned.get().Sub(begun))
		l.extend(time.Minute) // late, but the lease is held: there is time again
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 1086*time.Second, expired.get().Sub(begun))
	})
}

func TestAnExtensionThatCrossesTheTimerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, warned, _ := watched()
		l.extend(30 * time.Second)
		l.check() // the timer of an earlier lease, come late
		require.Zero(t, warned.get())
		l.release()
	})
}

func TestALeaseThatRanOutWhileTheProcessWasStoppedExpiresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, warned, expired := watched()
		l.extend(30 * time.Second)
		l.until = time.Now().Add(-time.Second)
		l.check()
		require.Zero(t, warned.get())
		require.Equal(t, time.Now(), expired.get())
		l.release()
	})
}

func TestAReleasedLeaseIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, warned, expired := watched()
		l.extend(time.Second)
		l.release()
		l.extend(time.Second)
		l.check()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, warned.get())
		require.Zero(t, expired.get())
	})
}

func TestATimeTooLongForGoIsTheLongest(t *testing.T) {
	require.Equal(t, 1500*time.Millisecond, fromMillis(1500))
	require.Greater(t, fromMillis(math.MaxUint64), 100*365*24*time.Hour)
}
