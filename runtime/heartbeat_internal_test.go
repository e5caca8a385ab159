package runtime

import (
	"context"
	"errors"
	"log/slog"
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

// renewing renews every lease, or none.
type renewing struct {
	Store
	beats  atomic.Int64
	broken atomic.Bool
}

func (r *renewing) Renew(_ context.Context, _ string, leases []job.Lease, _ time.Duration) (renewed []job.Renewed, err error) {
	r.beats.Add(1)
	if r.broken.Load() {
		return nil, errors.New("the database is away")
	}
	for _, lease := range leases {
		renewed = append(renewed, job.Renewed{ID: lease.ID})
	}
	return renewed, nil
}

// beating runs a heartbeat, with leases of 30 s, until the test ends. The clock is that of a bubble.
func beating(t *testing.T) (*heartbeat, *renewing) {
	t.Helper()
	none, err := metrics.New(noop.Meter{})
	require.NoError(t, err)
	store := new(renewing)
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
