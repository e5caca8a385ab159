package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// renewing renews every lease, or none. It keeps those whose handlers have begun.
type renewing struct {
	Store
	beats  atomic.Int64
	broken atomic.Bool

	mu   sync.Mutex
	kept map[job.LeaseID]bool
	lost job.LeaseID // another's by now
	last beat
}

// beat says how many leases a heartbeat named and had forgotten, and how many are kept after it.
type beat struct{ named, forgotten, kept int }

func (r *renewing) Renew(_ context.Context, _ string, leases []job.Lease, forgotten []job.LeaseID, _ time.Duration) (renewed []job.Renewed, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats.Add(1)
	defer func() { r.last = beat{named: len(leases), forgotten: len(forgotten), kept: len(r.kept)} }()
	if r.broken.Load() {
		return nil, errors.New("the database is away")
	}
	for _, id := range forgotten {
		delete(r.kept, id)
	}
	for _, lease := range leases {
		switch {
		case lease.ID == r.lost && r.lost != (job.LeaseID{}):
		case lease.Began.Known:
			r.kept[lease.ID] = true
		default:
			renewed = append(renewed, job.Renewed{ID: lease.ID})
		}
	}
	for id := range r.kept {
		renewed = append(renewed, job.Renewed{ID: id, Kept: true})
	}
	return renewed, nil
}

func (r *renewing) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// next waits for the next beat, and for what follows it at once.
func (r *renewing) next() beat {
	for came := false; !came; {
		came = r.within(100*time.Millisecond) > 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// beating runs a heartbeat, with leases of 30 s, until the test ends. The clock is that of a bubble.
func beating(t *testing.T) (*heartbeat, *renewing) {
	t.Helper()
	none, err := metrics.New(noop.Meter{})
	require.NoError(t, err)
	store := &renewing{kept: make(map[job.LeaseID]bool)}
	h := &heartbeat{
		cfg:   Config{Config: jobs.Config{Log: slog.New(slog.DiscardHandler)}, Lease: 30 * time.Second},
		store: store, inFlight: newInFlight(), metrics: none, now: loop.NewSignal(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go h.run(ctx)
	return h, store
}

func (r *renewing) within(d time.Duration) int64 {
	before := r.beats.Load()
	time.Sleep(d)
	synctest.Wait()
	return r.beats.Load() - before
}

func TestAHeartbeatBeatsLessOftenWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := beating(t)
		require.InDelta(t, 45, store.within(10*time.Minute), 3)
		h.inFlight.add(&attempt{})
		require.InDelta(t, 60, store.within(10*time.Minute), 3)
	})
}

func TestALeaseIsRenewedWithinAThirdHoweverLongNothingWasHeld(t *testing.T) {
	for idle := range 30 {
		synctest.Test(t, func(t *testing.T) {
			h, store := beating(t)
			time.Sleep(time.Minute + time.Duration(idle)*time.Second)
			h.inFlight.add(&attempt{})
			require.NotZero(t, store.within(11*time.Second))
		})
	}
}

func TestAHeartbeatThatFailsIsSoonTriedAgainWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, store := beating(t)
		store.broken.Store(true)
		require.NotZero(t, store.within(17*time.Second))
		require.GreaterOrEqual(t, store.within(10*time.Second), int64(3))
	})
}

// Half a lease after the last sign of life of its worker, a lost lease is that of a worker that is gone.
func TestAnIdleHeartbeatBeatsWithinHalfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, store := beating(t)
		for range 50 {
			for beat := false; !beat; {
				beat = store.within(100*time.Millisecond) > 0
			}
			require.NotZero(t, store.within(15*time.Second))
		}
	})
}

func TestAHeartbeatThatIsWantedAtOnceDoesNotWait(t *testing.T) {
	for held := range 2 {
		synctest.Test(t, func(t *testing.T) {
			h, store := beating(t)
			if held > 0 {
				h.inFlight.add(&attempt{})
			}
			for n := range int64(3) {
				h.now.Raise()
				time.Sleep(time.Second)
				require.Equal(t, n+1, store.beats.Load())
			}
		})
	}
}

// underWay is an attempt whose handler has begun.
func underWay(h *heartbeat, id byte) *attempt {
	a := &attempt{shared: &shared{metrics: h.metrics}, began: time.Now(), claimedAt: time.Now()}
	a.claimed.ID[0] = id
	h.inFlight.add(a)
	return a
}

func TestAKeptLeaseIsNotNamedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := beating(t)
		kept, waits := underWay(h, 1), &attempt{}
		h.inFlight.add(waits)
		require.Equal(t, 2, store.next().named)
		proven := kept.heldUntil()
		require.Equal(t, 1, store.next().named, "the other one waits for its handler")
		require.True(t, kept.heldUntil().After(proven))
		require.Empty(t, kept.stopped)

		store.set(func() { delete(store.kept, kept.claimed.ID); store.lost = kept.claimed.ID })
		store.next()
		require.Equal(t, job.CancelLeaseLost, kept.stopped)
		require.Empty(t, waits.stopped)
	})
}

// The database may have forgotten that a lease is kept: a failover has lost what it committed last.
func TestALeaseThatIsNotKeptAfterAllIsNamedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := beating(t)
		a := underWay(h, 1)
		require.Equal(t, 1, store.next().kept)
		store.set(func() { clear(store.kept) })
		require.Equal(t, 1, store.next().kept)
		require.Empty(t, a.stopped)
	})
}

// An attempt that was given up leaves its lease behind, which nothing else would ever end.
func TestAKeptLeaseOfWhichNoAttemptIsLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := beating(t)
		underWay(h, 1)
		left := underWay(h, 2)
		require.Equal(t, beat{named: 2, kept: 2}, store.next())
		h.inFlight.remove(&ending{attempt: left})
		require.Equal(t, beat{kept: 2}, store.next(), "it is noticed now")
		store.broken.Store(true)
		require.Equal(t, beat{forgotten: 1, kept: 2}, store.next())
		store.broken.Store(false)
		require.Equal(t, beat{forgotten: 1, kept: 1}, store.next())
		require.Equal(t, beat{kept: 1}, store.next())
	})
}

// It is settled in the moment in which the database answers.
func TestAnAttemptThatHasEndedMakesForNoOtherBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := beating(t)
		a := underWay(h, 1)
		require.Equal(t, 1, store.next().kept)
		store.set(func() { clear(store.kept) })
		a.mu.Lock()
		a.done = true
		a.mu.Unlock()
		before := store.beats.Load()
		store.next()
		store.within(time.Second)
		require.Equal(t, before+1, store.beats.Load())
		require.Empty(t, a.stopped)
	})
}

func TestAKeptLeaseIsNamedWithinTheHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := beating(t)
		underWay(h, 1)
		require.Equal(t, 1, store.next().named)
		began := time.Now()
		for store.next().named == 0 {
			require.Less(t, time.Since(began), 30*time.Minute)
		}
		require.Greater(t, time.Since(began), 15*time.Minute)
		require.Zero(t, store.next().named)
	})
}
