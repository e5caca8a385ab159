package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Of what lines up for one plugin only as much counts against the others as
// its slots could take.
func TestWhatLinesUpForAPluginLeavesRoomForOthers(t *testing.T) {
	l := newLineup(Config{Concurrency: 100, ClaimAhead: time.Second}, nil, newHoldings())
	busy, idle := job.Pool{Plugin: "busy", Free: 4}, job.Pool{Plugin: "idle", Free: 4}
	l.mu.Lock()
	l.laneOf(busy).shared.queue = make([]standby, 500)
	l.mu.Unlock()
	require.Equal(t, 4, l.wanted(idle, 4))
	require.Equal(t, 1, l.wanted(idle, 95), "but for what its slots can take")
	require.Zero(t, l.wanted(busy, 4))
}

func TestHowManyAreClaimedAheadFollowsFromHowLongTheyTake(t *testing.T) {
	l := newLineup(Config{Concurrency: 100, ClaimAhead: 50 * time.Millisecond}, nil, newHoldings())
	pool := job.Pool{Plugin: "p", Free: 10}
	require.Equal(t, 10, l.wanted(pool, 0), "nothing is known yet")
	for mean, want := range map[time.Duration]int{
		time.Microsecond: 10 + 2*claimBatch, 5 * time.Millisecond: 10 + 100, 50 * time.Millisecond: 10 + 10, 51 * time.Millisecond: 10,
	} {
		l.lanes["p"].mean = mean
		require.Equal(t, want, l.wanted(pool, 0), mean)
	}
}
