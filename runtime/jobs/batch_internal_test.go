package jobs

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/flushes"
)

const patience = 2 * time.Minute

// running runs a loop until the end of the test, or of the function it returns.
func running(t *testing.T, run func(context.Context)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { run(ctx) })
	end = func() {
		cancel()
		loops.Wait()
	}
	t.Cleanup(end)
	return end
}

// add leaves the items to run.
func (b *batcher[T]) add(items ...T) {
	b.put(items)
	b.added.Raise()
}

func TestABatchHasWhatGatheredDuringTheLastFlush(t *testing.T) {
	f := flushes.New()
	var flushed []int
	b := newBatcher(10, func(batch []int) {
		flushed = append(flushed, batch...)
		f.Of(len(batch))
	})
	end := running(t, b.run)
	b.add(0)
	require.Equal(t, 1, f.Next(t), "a lone one does not wait")
	for i := range 25 {
		b.add(i + 1)
	}
	f.None(t)
	close(f.First)
	require.Equal(t, []int{10, 10, 5}, []int{f.Next(t), f.Next(t), f.Next(t)})
	b.add(26)
	require.Equal(t, 1, f.Next(t))
	end()
	require.Len(t, flushed, 27)
	for i, item := range flushed {
		require.Equal(t, i, item, "in the order they came")
	}
}

func TestItemsAddedBeforeTheEndAreFlushed(t *testing.T) {
	f := flushes.New()
	b := newBatcher(10, func(batch []int) { f.Of(len(batch)) })
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(ended); b.run(ctx) }()
	b.add(1)
	require.Equal(t, 1, f.Next(t))
	b.add(2, 3)
	cancel()
	close(f.First)
	<-ended
	require.Equal(t, 2, f.Next(t))
	f.None(t)
}

func TestALoneCallerFlushesItsOwnItem(t *testing.T) {
	var flushed []int
	b := newBatcher(10, func(batch []int) { flushed = append(flushed, batch...) })
	b.join(1) // nothing runs: only the caller can have done it
	b.join(2)
	require.Equal(t, []int{1, 2}, flushed)
}

func TestItemsThatJoinDuringAFlushAreFlushedByRun(t *testing.T) {
	f := flushes.New()
	b := newBatcher(10, func(batch []int) { f.Of(len(batch)) })
	end := running(t, b.run)
	led := make(chan struct{})
	go func() { defer close(led); b.join(1) }()
	require.Equal(t, 1, f.Next(t))
	for i := range 5 {
		b.join(i) // returns at once
	}
	f.None(t)
	close(f.First)
	require.Equal(t, 5, f.Next(t))
	<-led
	end()
	f.None(t)
}

func TestNoItemIsLost(t *testing.T) {
	const callers, each = 50, 200
	var flushed atomic.Int64
	b := newBatcher(7, func(batch []chan struct{}) {
		flushed.Add(int64(len(batch)))
		for _, done := range batch {
			close(done)
		}
	})
	running(t, b.run)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				done := make(chan struct{})
				b.join(done)
				<-done
			}
		})
	}
	all.Wait()
	require.EqualValues(t, callers*each, flushed.Load())
}

// A panic of whoever flushes is answered by the API, which goes on: the next
// caller must still be able to flush.
func TestAFlushThatPanicsEndsItsTurn(t *testing.T) {
	flushed := make(chan []int, 1)
	b := newBatcher(10, func(batch []int) {
		if batch[0] == 1 {
			panic("once")
		}
		flushed <- slices.Clone(batch)
	})
	require.Panics(t, func() { b.join(1) })
	b.join(2)
	select {
	case batch := <-flushed:
		require.Equal(t, []int{2}, batch)
	case <-time.After(patience):
		t.Fatal("nobody can flush any more")
	}
}

func TestTheMemoryOfABatchIsUsedAgain(t *testing.T) {
	var flushed []int
	b := newBatcher(2, func(batch []int) { flushed = batch })
	b.join(1)
	require.Equal(t, []int{0}, flushed, "nothing is kept alive")
	b.flush = func([]int) {}
	items := []int{2}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		b.put(items)
		b.flushAll()
	}))
}

func TestTheMemoryOfManyBatchesIsNotKept(t *testing.T) {
	b := newBatcher(2, func([]int) {})
	b.put(make([]int, 99))
	b.flushAll()
	require.Nil(t, b.pending)
	require.Nil(t, b.spare, "not a part of it either")
	b.put([]int{1})
	b.flushAll()
	require.LessOrEqual(t, cap(b.spare), 2)
	require.NotNil(t, b.spare)
}
