package plugins

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func crash(plugin string) job.PluginEvent {
	return job.PluginEvent{At: time.Now(), Plugin: plugin, Event: job.PluginCrashed}
}

func counts(events []job.PluginEvent) (counts []int) {
	for _, e := range events {
		counts = append(counts, e.Count)
	}
	return counts
}

func TestACrashLoopIsKeptAsAFewEventsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJournal()
		for range 42 {
			j.Add(crash("loop"))
		}
		rollback := crash("loop")
		rollback.Event = job.PluginRolledBack
		for range keptEach + 1 {
			j.Add(rollback)
		}
		j.Add(crash("other"))
		require.Len(t, j.take(100, time.Now()), keptEach+keptEach+1+1, "five crashes, all rollbacks, and the crash of the other")
		time.Sleep(keptPeriod)
		rest := j.take(100, time.Now())
		require.Equal(t, []int{37}, counts(rest))
		require.Equal(t, "loop", rest[0].Plugin)
		j.Add(crash("loop"))
		require.Equal(t, []int{1}, counts(j.take(100, time.Now())), "in the next minute")
	})
}

func TestTheOldestEventsAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJournal()
		for range maxWaiting / keptEach {
			for range 2 * keptEach {
				j.Add(crash("loop"))
			}
			time.Sleep(keptPeriod)
		}
		require.Len(t, j.waiting, maxWaiting)
		all := maxWaiting * 2
		var total int
		var lost job.PluginEvent
		for batch := j.take(100, time.Now()); len(batch) > 0; batch = j.take(100, time.Now()) {
			if batch[0].Event == job.PluginEventsLost {
				lost = batch[0]
			}
			for _, e := range batch {
				total += e.Count
			}
		}
		require.Equal(t, all, total, "each event is told or counted")
		require.Positive(t, lost.Count)
		require.NotEmpty(t, lost.Reason)
	})
}

func TestEventsThatAreGivenBackStayBeforeLaterOnes(t *testing.T) {
	j := NewJournal()
	j.Add(crash("first"))
	taken := j.take(10, time.Now())
	j.Add(crash("second"))
	j.giveBack(taken)
	again := j.take(10, time.Now())
	require.Len(t, again, 2)
	require.Equal(t, taken[0], again[0], "with its id")
	require.Equal(t, "second", again[1].Plugin)
}

// ledger is a store that can be away.
type ledger struct {
	mu      sync.Mutex
	away    error
	written []job.PluginEvent
	old     int
}

func (l *ledger) RecordPluginEvents(_ context.Context, _ job.Worker, events []job.PluginEvent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away == nil {
		l.written = append(l.written, events...)
	}
	return l.away
}

func (l *ledger) ForgetPluginEvents(_ context.Context, _ time.Duration, limit int) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	deleted := min(l.old, limit)
	l.old -= deleted
	return deleted, l.away
}

func TestTheRecorderWaitsForTheDatabaseAndTheHostDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{away: errors.New("away"), old: 2*tidyBatch + 1}
		r := &Recorder{Journal: NewJournal(), Store: l, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		r.Journal.Add(crash("plugin"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, l.written)
		l.mu.Lock()
		l.away = nil
		l.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, l.written, 1)
		time.Sleep(recordInterval * 2)
		synctest.Wait()
		require.Zero(t, l.old, "in portions")
		for range 2 * keptEach {
			r.Journal.Add(crash("plugin"))
		}
		cancel()
		<-ended
		require.Greater(t, len(l.written), 1, "what waits is written at the end")
	})
}
