package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Of what lines up for one plugin only as much counts against the others as
// its slots could take.
func TestWhatLinesUpForAPluginLeavesRoomForOthers(t *testing.T) {
	l := newLineup(Config{Concurrency: 100, Prefetch: time.Second}, nil, newHoldings())
	busy, idle := job.Pool{Plugin: "busy", Free: 4, Slots: 8}, job.Pool{Plugin: "idle", Free: 4, Slots: 4}
	l.mu.Lock()
	l.laneOf(busy).shared.queue = make([]standby, 500)
	l.mu.Unlock()
	require.Equal(t, 4, l.wanted(idle, 4))
	require.Equal(t, 1, l.wanted(idle, 95), "but for what its slots can take")
	require.Zero(t, l.wanted(busy, 4))
}

func TestHowManyAreClaimedAheadFollowsFromHowLongTheyTake(t *testing.T) {
	l := newLineup(Config{Concurrency: 100, Prefetch: 50 * time.Millisecond}, nil, newHoldings())
	pool := job.Pool{Plugin: "p", Free: 10, Slots: 10}
	require.Equal(t, 10, l.wanted(pool, 0), "nothing is known yet")
	for mean, want := range map[time.Duration]int{
		time.Microsecond: 10 + 2*claimBatch, 5 * time.Millisecond: 10 + 100, 50 * time.Millisecond: 10 + 10, 51 * time.Millisecond: 10,
	} {
		l.lanes["p"].mean = mean
		require.Equal(t, want, l.wanted(pool, 0), mean)
	}
}

func TestNothingIsClaimedForAPluginThatIsDown(t *testing.T) {
	l := newLineup(Config{Concurrency: 100, Prefetch: time.Second}, nil, newHoldings())
	up, down := job.Pool{Plugin: "p", Free: 10, Slots: 10}, job.Pool{Plugin: "p", Down: true}
	require.Equal(t, 10, l.wanted(up, 0))
	l.lanes["p"].mean = time.Millisecond
	require.Equal(t, 10+2*claimBatch, l.wanted(up, 0))
	require.Zero(t, l.wanted(down, 0))
}

// How soon an attempt ends that its process does not survive says nothing of how
// soon the slots of the next process are free.
func TestNothingIsClaimedAheadSoonAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLineup(Config{Concurrency: 100, Prefetch: 50 * time.Millisecond}, nil, newHoldings())
		pool := job.Pool{Plugin: "p", Free: 10, Slots: 10}
		a := &attempt{pool: pool}
		l.wanted(pool, 0)
		for _, died := range []job.OutcomeKind{job.Crash, job.Released} {
			l.ended(a, job.Success, 5*time.Millisecond)
			require.Equal(t, 10+100, l.wanted(pool, 0))
			for range 100 {
				l.ended(a, died, time.Microsecond)
			}
			require.Equal(t, 10, l.wanted(pool, 0), "only what there are slots for")
			time.Sleep(calmFor + time.Nanosecond)
			require.Equal(t, 10+100, l.wanted(pool, 0), "by the attempts that have come to an end of their own")
		}
	})
}

func TestWhatHasLinedUpWaitsForAPluginThatIsDownForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLineup(Config{Concurrency: 100, Lease: time.Minute}, nil, newHoldings())
		pool := job.Pool{Plugin: "p", Types: []string{"T"}, Free: 10, Slots: 10}
		down := job.Pool{Plugin: "p", Types: []string{"T"}, Down: true, FreeIsolated: 1}
		l.mu.Lock()
		in := l.laneOf(pool)
		for crashes, of := range []*line{&in.shared, &in.alone} {
			of.queue = []standby{{&attempt{claimed: job.Claimed{Crashes: crashes}, pool: pool}, time.Now()}}
		}
		l.waiting = 2
		l.mu.Unlock()
		time.Sleep(waitAtMost - time.Nanosecond)
		l.disperse([]job.Pool{down})
		require.Equal(t, 2, l.count())

		_, ok := l.take(in, &in.shared)
		require.False(t, ok, "no process is up")
		_, ok = l.take(in, &in.alone)
		require.True(t, ok, "it gets one of its own")
		l.disperse([]job.Pool{pool})
		_, ok = l.take(in, &in.shared)
		require.True(t, ok)
	})
}

func TestASuspectOfATypeWithoutRoomLetsOthersPass(t *testing.T) {
	l := newLineup(Config{Concurrency: 100}, nil, newHoldings())
	pool := job.Pool{Plugin: "p", FreeIsolated: 5, RoomIsolated: map[string]int{"BOUND": 1}}
	l.mu.Lock()
	in := l.laneOf(pool)
	for _, jobType := range []string{"BOUND", "BOUND", "FREE", "BOUND", "FREE"} {
		in.alone.queue = append(in.alone.queue, standby{attempt: &attempt{claimed: job.Claimed{Type: jobType}}})
	}
	l.mu.Unlock()
	var taken []string
	for w, ok := l.take(in, &in.alone); ok; w, ok = l.take(in, &in.alone) {
		taken = append(taken, w.claimed.Type)
	}
	require.Equal(t, []string{"BOUND", "FREE", "FREE"}, taken)
	require.Len(t, in.alone.queue, 2)
}
