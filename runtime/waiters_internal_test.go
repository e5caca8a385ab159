package runtime

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// scheduled is a store all of whose jobs wait.
type scheduled struct{ Store }

func (scheduled) Get(context.Context, job.ID) (job.View, error) {
	return job.View{State: job.Created}, nil
}

func (scheduled) Ended(context.Context, []job.ID) ([]job.View, error) { return nil, nil }

// hinting returns waiters, and the hints that they have given so far.
func hinting() (w *waiters, given func() []job.Hint) {
	var mu sync.Mutex
	var hints []job.Hint
	cfg := Config{PollInterval: time.Second, Log: slog.New(slog.DiscardHandler)}
	w = newWaiters(scheduled{}, cfg, func(h job.Hint) {
		mu.Lock()
		defer mu.Unlock()
		hints = append(hints, h)
	})
	return w, func() []job.Hint {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(hints)
	}
}

func TestEndsAreHintedAtOnlyWhileSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, given := hinting()
		w.jobEnded(job.ID{1})
		require.Empty(t, given())

		w.awaited()
		require.Equal(t, []job.Hint{job.JobsEnded}, given(), "for what ended before we knew")
		w.awaited()
		require.Len(t, given(), 1, "known already")
		w.jobEnded(job.ID{2})
		require.Len(t, given(), 2)

		time.Sleep(awaitedFor)
		w.jobEnded(job.ID{3})
		require.Len(t, given(), 2, "nobody has said so for long")
	})
}

func TestAProcessRepeatsThatItHasWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, given := hinting()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.run(ctx)
		for range 3 { // who come at once speak once
			go func() { _, _ = w.await(ctx, job.ID{1}) }()
		}
		synctest.Wait()
		require.Equal(t, []job.Hint{job.JobsAwaited}, given())
		time.Sleep(3 * awaitedFor)
		synctest.Wait()
		require.InDelta(t, 9, len(given()), 1)
		require.Len(t, w.waiting, 1)
		cancel()
		synctest.Wait()
		require.Empty(t, w.waiting)
	})
}
