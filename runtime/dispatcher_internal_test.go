package runtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Of what waits for one plugin, only as much counts against the others as its slots
// could take.
func TestAttemptsThatWaitForAPluginLeaveRoomForOthers(t *testing.T) {
	d := newDispatcher(Config{Concurrency: 100, Prefetch: time.Second}, newInFlight())
	busy, idle := job.Pool{Plugin: "busy", Free: 4, Slots: 8}, job.Pool{Plugin: "idle", Free: 4, Slots: 4}
	d.mu.Lock()
	d.queueOf(busy).look(busy)
	d.queueOf(busy).shared.attempts = make([]*attempt, 500)
	d.mu.Unlock()
	require.Equal(t, 4, d.wanted(idle, 4))
	require.Equal(t, 1, d.wanted(idle, 95), "but for what its slots can take")
	require.Zero(t, d.wanted(busy, 4))
}

func TestShorterAttemptsMeanMorePrefetchedJobs(t *testing.T) {
	d := newDispatcher(Config{Concurrency: 100, Prefetch: 50 * time.Millisecond}, newInFlight())
	pool := job.Pool{Plugin: "p", Free: 10, Slots: 10}
	require.Equal(t, 10, d.wanted(pool, 0), "nothing is known yet")
	for mean, want := range map[time.Duration]int{
		time.Microsecond: 10 + maxPrefetched, 5 * time.Millisecond: 10 + 100, 50 * time.Millisecond: 10 + 10, 51 * time.Millisecond: 10,
	} {
		d.queues["p"].mean = mean
		require.Equal(t, want, d.wanted(pool, 0), mean)
	}
}

func TestNothingIsClaimedForAPluginThatIsDown(t *testing.T) {
	d := newDispatcher(Config{Concurrency: 100, Prefetch: time.Second}, newInFlight())
	up, down := job.Pool{Plugin: "p", Free: 10, Slots: 10}, job.Pool{Plugin: "p", Down: true}
	require.Equal(t, 10, d.wanted(up, 0))
	d.queues["p"].mean = time.Millisecond
	require.Equal(t, 10+maxPrefetched, d.wanted(up, 0))
	require.Zero(t, d.wanted(down, 0))
}

// How soon an attempt ends that its process does not survive says nothing of how
// soon the slots of the next process are free.
func TestNothingIsPrefetchedSoonAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(Config{Concurrency: 100, Prefetch: 50 * time.Millisecond}, newInFlight())
		pool := job.Pool{Plugin: "p", Free: 10, Slots: 10}
		a := &attempt{pool: &pool}
		d.wanted(pool, 0)
		for _, died := range []job.OutcomeKind{job.Crash, job.Released} {
			d.ended(a, job.Success, 5*time.Millisecond)
			require.Equal(t, 10+100, d.wanted(pool, 0))
			for range 100 {
				d.ended(a, died, time.Microsecond)
			}
			require.Equal(t, 10, d.wanted(pool, 0), "only what there are slots for")
			time.Sleep(noPrefetchFor + time.Nanosecond)
			require.Equal(t, 10+100, d.wanted(pool, 0), "by the attempts that have come to an end of their own")
		}
	})
}

func TestQueuedAttemptsWaitForAPluginThatIsDownForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(Config{Concurrency: 100, Lease: time.Minute}, newInFlight())
		pool := job.Pool{Plugin: "p", Types: []string{"T"}, Free: 10, Slots: 10}
		down := job.Pool{Plugin: "p", Types: []string{"T"}, Down: true, FreeIsolated: 1}
		d.mu.Lock()
		in := d.queueOf(pool)
		in.look(pool)
		for crashes, of := range []*queue{&in.shared, &in.isolated} {
			of.attempts = []*attempt{{claimed: job.Claimed{Crashes: crashes}, pool: &pool, queued: time.Now()}}
		}
		d.waiting = 2
		d.mu.Unlock()
		time.Sleep(maxWait - time.Nanosecond)
		d.releaseStale([]job.Pool{down})
		require.Equal(t, 2, d.count())

		_, ok := d.take(in, &in.shared)
		require.False(t, ok, "no process is up")
		_, ok = d.take(in, &in.isolated)
		require.True(t, ok, "it gets one of its own")
		d.releaseStale([]job.Pool{pool})
		_, ok = d.take(in, &in.shared)
		require.True(t, ok)
	})
}

func TestASuspectOfATypeWithoutRoomDoesNotBlockOthers(t *testing.T) {
	d := newDispatcher(Config{Concurrency: 100}, newInFlight())
	pool := job.Pool{Plugin: "p", FreeIsolated: 5, RoomIsolated: map[string]int{"BOUND": 1}}
	d.mu.Lock()
	in := d.queueOf(pool)
	in.look(pool)
	for _, jobType := range []string{"BOUND", "BOUND", "FREE", "BOUND", "FREE"} {
		in.isolated.attempts = append(in.isolated.attempts, &attempt{claimed: job.Claimed{Type: jobType}})
	}
	d.mu.Unlock()
	var taken []string
	for w, ok := d.take(in, &in.isolated); ok; w, ok = d.take(in, &in.isolated) {
		taken = append(taken, w.claimed.Type)
	}
	require.Equal(t, []string{"BOUND", "FREE", "FREE"}, taken)
	require.Len(t, in.isolated.attempts, 2)
}

func TestASlotThatIsFreedWhileAnAttemptIsPutBackIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		flying := newInFlight()
		d := newDispatcher(Config{Concurrency: 100}, flying)
		pool := job.Pool{Plugin: "p", Types: []string{"T"}, Free: 1, Slots: 1}
		d.add(pool, []*attempt{{pool: &pool}})
		tries := 0
		go d.run(ctx, func(a *attempt) bool {
			if tries++; tries > 1 {
				return true
			}
			d.ended(&attempt{pool: &pool}, job.Success, time.Millisecond) // after the plugin said that it has no slot
			flying.notStarted()
			return !d.putBack(a)
		})
		d.dispatch(ctx)
		synctest.Wait()
		require.Equal(t, 2, tries)
	})
}
