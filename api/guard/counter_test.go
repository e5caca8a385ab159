package guard

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func one(name string) []subject { return []subject{{name: name}} }

func TestTheWindowSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		fits := func(n int) bool { _, fits := c.take(one("a"), n, 100); return fits }
		require.True(t, fits(60))
		require.False(t, fits(41))
		require.True(t, fits(40), "what was refused has not been counted")

		time.Sleep(window)
		require.False(t, fits(1), "all of the window before still counts")
		time.Sleep(window / 4)
		require.False(t, fits(26))
		require.True(t, fits(25), "a quarter of it has passed")
		time.Sleep(2 * window)
		require.True(t, fits(100))
		time.Sleep(100 * window)
		require.True(t, fits(100))
	})
}

func TestAClientThatWaitsForRetryAfterIsNotRefusedAgain(t *testing.T) {
	const quota = 100
	for _, past := range []struct{ before, now int }{{100, 0}, {60, 80}, {0, 100}, {100, 0}, {33, 70}} {
		for _, n := range []int{1, 7, 50, 100} {
			for _, elapsed := range []time.Duration{0, time.Second, 31 * time.Second, 59999 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					c := newCounter()
					c.current.add(hashOf(c, "a"), past.before)
					time.Sleep(window)
					c.look(one("a"), 0, quota)
					c.current.add(hashOf(c, "a"), past.now)
					time.Sleep(elapsed)
					used, fits := c.look(one("a"), n, quota)
					if fits {
						require.Zero(t, used.wait(n, quota))
						return
					}
					wait := used.wait(n, quota)
					require.Positive(t, wait)
					time.Sleep(wait - wait/50)
					_, fits = c.look(one("a"), n, quota)
					require.False(t, fits, "told to wait too long: %s", wait)
					time.Sleep(wait/50 + time.Millisecond)
					_, fits = c.look(one("a"), n, quota)
					require.True(t, fits, "%+v n=%d after %s: not long enough: %s", past, n, elapsed, wait)
				})
			}
		}
	}
}

func TestAllSubjectsAreCountedOrNone(t *testing.T) {
	c := newCounter()
	both := []subject{{name: "a"}, {name: "b"}}
	_, fits := c.take(one("b"), 8, 10)
	require.True(t, fits)
	_, fits = c.take(both, 3, 10)
	require.False(t, fits)
	used, fits := c.take(both, 2, 10)
	require.True(t, fits)
	require.Equal(t, 8, used.current, "the usage of the subject that is nearest to the quota")
	_, fits = c.take(one("a"), 8, 10)
	require.True(t, fits, "the refused three were counted for neither")
}

func TestAMillionClientsNeedNoMoreMemoryThanOne(t *testing.T) {
	c := newCounter()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const quota = 100
	for i := range 1_000_000 {
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		_, fits := c.take([]subject{{network: netip.PrefixFrom(address, 32)}}, 1, quota)
		require.True(t, fits, "others took its share: %s", address)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(256<<10))

	for i := range 100 {
		used, _ := c.look(one(fmt.Sprint("new", i)), 1, quota)
		require.Less(t, used.current, 1_000_000/24_000, "a newcomer looks as if it had taken as much")
	}
	runtime.KeepAlive(c)
}

func TestNobodyIsCountedTooLow(t *testing.T) {
	c := newCounter()
	for i := range 1000 {
		for range 50 {
			c.take(one(fmt.Sprint(i)), 1, 1000)
		}
	}
	for i := range 1000 {
		used, _ := c.look(one(fmt.Sprint(i)), 1, 1000)
		require.GreaterOrEqual(t, used.current, 50)
	}
}

func BenchmarkTake(b *testing.B) {
	c := newCounter()
	both := []subject{{network: netip.MustParsePrefix("192.0.2.1/32")}, {name: "token a"}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.take(both, 1, maxInt32)
		}
	})
}

const maxInt32 = 1<<31 - 1

func hashOf(c *counter, name string) uint64 { return maphash.Comparable(c.seed, subject{name: name}) }
