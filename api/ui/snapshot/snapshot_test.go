package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// brief is how long the viewers of the tests wait.
const brief = 150 * time.Millisecond

// source is read for figures: each reading takes a time, and returns its number.
type source struct {
	mu    sync.Mutex
	takes time.Duration
	fails error
	begun int
}

func (s *source) read(ctx context.Context) (int, error) {
	s.mu.Lock()
	s.begun++
	n, takes, fails := s.begun, s.takes, s.fails
	s.mu.Unlock()
	select {
	case <-time.After(takes):
		return n, fails
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// become is how the readings that begin from now on go.
func (s *source) become(takes time.Duration, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.fails = takes, fails
}

// readings is how many have begun.
func (s *source) readings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func TestTenViewersCostOneReadingARefresh(t *testing.T) {
	for _, figures := range []struct {
		cost  snapshot.Cost
		takes time.Duration
		want  int
	}{
		{snapshot.Steady, 0, 31}, // each 2 s, from 0 to 60
		{snapshot.Steady, 100 * time.Millisecond, 31},
		{snapshot.Steady, 500 * time.Millisecond, 13}, // each 5 s
		{snapshot.Steady, time.Second, 7},             // each 10 s
		{snapshot.Growing, 10 * time.Millisecond, 31},
		{snapshot.Growing, 100 * time.Millisecond, 7}, // each 10 s
		{snapshot.Growing, time.Second, 3},            // each 30 s
	} {
		t.Run(fmt.Sprint(figures), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, source := &snapshot.Cache{}, &source{takes: figures.takes}
				var viewers sync.WaitGroup
				for range 10 {
					viewers.Go(func() {
						for began := time.Now(); time.Since(began) <= time.Minute; time.Sleep(250 * time.Millisecond) {
							_, err := snapshot.Get(t.Context(), cache, "metrics", figures.cost, brief, source.read)
							require.NoError(t, err)
						}
					})
				}
				viewers.Wait()
				require.InDelta(t, figures.want, source.readings(), 2)
				time.Sleep(figures.takes) // One may be under way.
			})
		})
	}
}

func TestFiguresGrowOldWhenTheyCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{}
		read := time.Now()
		first, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, 1, first.Value)
		require.Zero(t, first.Failing)

		time.Sleep(5 * time.Second)
		source.become(0, errors.New("connection refused"))
		stopped := time.Now()
		for range 3 {
			old, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
			require.NoError(t, err)
			require.Equal(t, 1, old.Value)
			require.Equal(t, read, old.At)
			require.Equal(t, stopped, old.Failing, "since the first failure")
			time.Sleep(4 * time.Second)
		}

		source.become(0, nil)
		again, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, source.readings(), again.Value)
		require.Zero(t, again.Failing, "it recovers by itself")
	})
}

func TestNobodyWaitsLongForADatabaseThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{}
		_, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		source.become(time.Hour, nil)

		asked := time.Now()
		old, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, brief, time.Since(asked))
		require.Equal(t, 1, old.Value)
		require.Zero(t, old.Failing, "it may only be slow")

		second := time.Now()
		_, err = snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, second, time.Now(), "the next one does not wait for the same reading again")
		time.Sleep(2 * time.Second)
		old, err = snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, asked, old.Failing)

		asked = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = snapshot.Get(ctx, cache, "new", snapshot.Steady, brief, source.read)
		var problem *v1.Problem
		require.ErrorAs(t, err, &problem)
		require.Equal(t, 503, problem.Status, "and without old figures there is no answer")
		require.Equal(t, 2*time.Second, time.Since(asked))

		source.become(0, nil)
		time.Sleep(time.Minute) // The reading that hangs is given up.
		again, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Zero(t, again.Failing)
	})
}

// The reading belongs to all who wait, not to the one that came first.
func TestAReadingOutlivesTheViewerThatBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{takes: time.Second}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = snapshot.Get(ctx, cache, "k", snapshot.Steady, brief, source.read) }()
		synctest.Wait()
		leave()
		got, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, 1, got.Value)
	})
}

func TestARefusalIsNotHiddenByOldFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{}
		_, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		source.become(0, fmt.Errorf("get: %w", v1.NewProblem(403, "no")))
		_, err = snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.ErrorIs(t, err, source.fails)
		source.become(0, nil)
		got, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
		require.NoError(t, err)
		require.Equal(t, 3, got.Value)
	})
}

func TestFiguresOfOneKeyAreNotThoseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &snapshot.Cache{}
		for round := range 3 {
			for key := range 1000 {
				got, err := snapshot.Get(t.Context(), cache, fmt.Sprint(key), snapshot.Steady, brief, func(context.Context) (int, error) { return key, nil })
				require.NoError(t, err, round)
				require.Equal(t, key, got.Value)
			}
			time.Sleep(time.Minute)
		}
		require.LessOrEqual(t, cache.Len(), 256, "and the oldest are forgotten")
	})
}

func TestAPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := snapshot.Get(t.Context(), &snapshot.Cache{}, "k", snapshot.Steady, brief, func(context.Context) (int, error) { panic("secret") })
		require.ErrorContains(t, err, "panic: secret")
	})
}

func TestNobodyWaitsForASlowReadingWhileTheLastFiguresAreCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{takes: 500 * time.Millisecond}
		get := func() (figures snapshot.Figures[int], waited time.Duration) {
			asked := time.Now()
			figures, err := snapshot.Get(t.Context(), cache, "k", snapshot.Steady, brief, source.read)
			require.NoError(t, err)
			return figures, time.Since(asked)
		}
		_, waited := get()
		require.Equal(t, 500*time.Millisecond, waited, "there is nothing else")

		time.Sleep(10 * time.Second)
		last, waited := get()
		require.Equal(t, 1, last.Value)
		require.Zero(t, waited)
		require.Zero(t, last.Failing)
		time.Sleep(time.Second)
		last, _ = get()
		require.Equal(t, 2, last.Value, "they were read meanwhile")

		read := time.Now()
		time.Sleep(time.Hour)
		last, waited = get()
		require.Equal(t, 2, last.Value)
		require.WithinDuration(t, read, last.At, 10*time.Second, "it says how old they are")
		require.Equal(t, brief, waited, "those of a quick reading would be better")

		time.Sleep(10 * time.Second)
		source.become(time.Hour, nil)
		hangs := time.Now()
		last, waited = get()
		require.Zero(t, waited)
		require.Zero(t, last.Failing)
		time.Sleep(2 * time.Second)
		last, waited = get()
		require.Zero(t, waited)
		require.Equal(t, hangs, last.Failing, "it is said once a reading takes too long")
		time.Sleep(time.Minute) // The reading that hangs is given up.
	})
}

func TestNobodyWaitsUntilManyJobsAreCountedForTheFirstTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{takes: 10 * time.Second}
		get := func() (snapshot.Figures[int], error) {
			return snapshot.Get(t.Context(), cache, "k", snapshot.Growing, brief, source.read)
		}
		asked := time.Now()
		first, err := get()
		require.NoError(t, err)
		require.Equal(t, brief, time.Since(asked))
		require.True(t, first.Pending())
		time.Sleep(5 * time.Second)
		first, err = get()
		require.NoError(t, err)
		require.True(t, first.Pending())
		require.Zero(t, first.Failing, "nobody knows how long it takes")

		time.Sleep(5 * time.Second)
		counted, err := get()
		require.NoError(t, err)
		require.Equal(t, snapshot.Figures[int]{Value: 1, At: asked.Add(10 * time.Second)}, counted)
		require.Equal(t, 1, source.readings())

		source.become(0, errors.New("connection refused"))
		_, err = snapshot.Get(t.Context(), cache, "other", snapshot.Growing, brief, source.read)
		require.ErrorIs(t, err, source.fails, "what cannot be counted is not pending")
	})
}

// A reading that always takes long must not look as if the database did not answer.
func TestASlowReadingIsNotOneThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := &snapshot.Cache{}, &source{takes: 4 * time.Second}
		for range 100 {
			figures, err := snapshot.Get(t.Context(), cache, "k", snapshot.Growing, brief, source.read)
			require.NoError(t, err)
			require.Zero(t, figures.Failing)
			time.Sleep(2 * time.Second)
		}
		require.Greater(t, source.readings(), 3)
	})
}
