package events

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 2 * time.Minute

// ledger has events first..last in memory.
type ledger struct {
	mu          sync.Mutex
	first, last int64
	epoch       byte         // of the events
	shared, own atomic.Int64 // reads
	fails       atomic.Bool
}

func (l *ledger) set(first, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.last = first, last
}

func (l *ledger) page(after int64, limit int) (page job.EventPage, err error) {
	if l.fails.Load() {
		return page, job.ErrUnavailable
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	page.Last = l.last
	for id := max(after, l.first-1); id < l.last && len(page.Events) < limit; id++ {
		page.Events = append(page.Events, event(id+1))
		page.Events[len(page.Events)-1].JobID[0] = l.epoch
	}
	return page, nil
}

func event(id int64) job.Event {
	return job.Event{ID: id, Type: []string{"EVEN", "ODD"}[id%2], Tenant: "default"}
}

func (l *ledger) NewEvents(_ context.Context, after int64, limit int) (job.EventPage, error) {
	l.shared.Add(1)
	return l.page(after, limit)
}

func (l *ledger) OldEvents(_ context.Context, after int64, limit int) (job.EventPage, error) {
	l.own.Add(1)
	return l.page(after, limit)
}

// begin runs a hub on the ledger until the test ends.
func begin(t *testing.T, l *ledger, maxStreams int) *Hub {
	t.Helper()
	h := New(Config{Poll: 5 * time.Millisecond, Wake: loop.NewSignal(), MaxStreams: maxStreams, Log: slog.New(slog.DiscardHandler)}, l)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return h
}

// awaitPosition waits until the hub has read the events up to the id.
func awaitPosition(t *testing.T, h *Hub, last int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.last >= last
	}, patience, time.Millisecond)
}

func follow(t *testing.T, h *Hub, filter job.EventFilter, after ...int64) job.EventStream {
	t.Helper()
	var from *int64
	if len(after) > 0 {
		from = &after[0]
	}
	s, err := h.Follow(t.Context(), filter, from)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// until reads the stream until it is at the id, and returns the ids of the events and the
// gaps.
func until(t *testing.T, s job.EventStream, last int64) (ids []int64, gaps []job.EventGap) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for s.Position() < last {
		batch, err := s.Next(ctx)
		require.NoError(t, err, "at %d", s.Position())
		if batch.Gap != nil {
			gaps = append(gaps, *batch.Gap)
		}
		for _, e := range batch.Events {
			ids = append(ids, e.ID)
		}
	}
	return ids, gaps
}

func from(first, last, step int64) (ids []int64) {
	for id := first; id <= last; id += step {
		ids = append(ids, id)
	}
	return ids
}

func TestAStreamHasEveryEventAfterItsBeginningInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		after  []int64
		filter job.EventFilter
		want   []int64
		gaps   []job.EventGap
	}{
		"from now on":      {want: from(3001, 9000, 1)},
		"resumed":          {after: []int64{1500}, want: from(1501, 9000, 1)},
		"from the oldest":  {after: []int64{1000}, want: from(1001, 9000, 1)},
		"from too old":     {after: []int64{7}, want: from(1001, 9000, 1), gaps: []job.EventGap{{After: 7, Next: 1001}}},
		"some of them":     {after: []int64{2998}, filter: job.EventFilter{Type: "ODD"}, want: from(2999, 9000, 2)},
		"none of them":     {after: []int64{2998}, filter: job.EventFilter{Tenant: "acme"}},
		"of the future":    {after: []int64{4000}, want: from(3001, 9000, 1), gaps: []job.EventGap{{After: 4000, Next: 3001}}},
		"where it is":      {after: []int64{3000}, want: from(3001, 9000, 1)},
		"from the first":   {after: []int64{0}, want: from(1001, 9000, 1), gaps: []job.EventGap{{After: 0, Next: 1001}}},
		"one of both ends": {after: []int64{2999}, filter: job.EventFilter{Type: "EVEN", Tenant: "default"}, want: from(3000, 9000, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			l.set(1001, 3000)
			s := follow(t, begin(t, l, 10), c.filter, c.after...)
			go func() {
				for last := int64(3000); last <= 9000; last += 600 {
					l.set(1001, last)
					runtime.Gosched()
				}
			}()
			ids, gaps := until(t, s, 9000)
			require.Equal(t, c.want, ids)
			require.Equal(t, c.gaps, gaps)
		})
	}
}

func TestAHundredStreamsCostOneReadEach(t *testing.T) {
	l := &ledger{}
	l.set(1, 1)
	h := begin(t, l, 100)
	var all []job.EventStream
	for range 100 {
		all = append(all, follow(t, h, job.EventFilter{}))
	}
	_, err := h.Follow(t.Context(), job.EventFilter{}, nil)
	require.ErrorIs(t, err, job.ErrTooManyStreams)
	awaitPosition(t, h, 1) // else the hub begins at 1000, and each stream reads alone once
	l.set(1, 1000)
	before := l.own.Load()
	var work sync.WaitGroup
	for _, s := range all {
		work.Go(func() {
			ids, gaps := until(t, s, 1000)
			if len(ids) != 999 || gaps != nil {
				t.Errorf("%d events, %v", len(ids), gaps)
			}
		})
	}
	work.Wait()
	require.Equal(t, before, l.own.Load(), "nobody had to read alone")
}

// A slow client holds nothing, and finds its way from the database.
func TestASlowStreamHarmsNobody(t *testing.T) {
	l := &ledger{}
	l.set(1, 1)
	h := begin(t, l, 10)
	slow, fast := follow(t, h, job.EventFilter{}), follow(t, h, job.EventFilter{})
	const last = 10 * remembered
	for n := int64(1); n <= last; n += 2000 {
		l.set(1, n)
		until(t, fast, n)
		h.mu.Lock()
		require.LessOrEqual(t, len(h.recent), 2*remembered+pageSize, "memory is bounded")
		h.mu.Unlock()
	}
	ids, gaps := until(t, slow, fast.Position())
	require.Equal(t, from(2, fast.Position(), 1), ids)
	require.Empty(t, gaps)

	l.set(fast.Position()+5000, fast.Position()+6000)
	ids, gaps = until(t, slow, fast.Position()+6000)
	require.Equal(t, []job.EventGap{{After: fast.Position(), Next: fast.Position() + 5000}}, gaps)
	require.Len(t, ids, 1001)
}

func TestAnOutageOfTheDatabaseLosesNothing(t *testing.T) {
	l := &ledger{}
	l.set(1, 1)
	h := begin(t, l, 10)
	s := follow(t, h, job.EventFilter{})
	l.fails.Store(true)
	reads := l.shared.Load()
	require.Eventually(t, func() bool { return l.shared.Load() > reads }, patience, time.Millisecond)
	l.set(1, 100)
	l.fails.Store(false)
	ids, gaps := until(t, s, 100)
	require.Equal(t, from(2, 100, 1), ids)
	require.Empty(t, gaps)
}

func TestADatabaseThatLostEventsIsAGap(t *testing.T) {
	l := &ledger{}
	l.set(1, 1)
	h := begin(t, l, 10)
	s := follow(t, h, job.EventFilter{})
	l.set(1, 100)
	until(t, s, 100)
	l.set(1, 50)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	batch, err := s.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, &job.EventGap{After: 100, Next: 51}, batch.Gap)
	l.set(1, 60)
	ids, _ := until(t, s, 60)
	require.Equal(t, from(51, 60, 1), ids)
}

// A failover loses events, and their ids are given again before the hub looks.
func TestOtherEventsWithTheSameIdsAreAGap(t *testing.T) {
	for name, last := range map[string]int64{"as many": 100, "more": 130} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			l.set(1, 1)
			h := begin(t, l, 10)
			s, idle := follow(t, h, job.EventFilter{}), follow(t, h, job.EventFilter{})
			awaitPosition(t, h, 1)
			l.set(1, 100)
			until(t, s, 100)
			until(t, idle, 100)
			l.mu.Lock()
			l.last, l.epoch = last, 1
			l.mu.Unlock()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			batch, err := s.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, &job.EventGap{After: 100, Next: last + 1}, batch.Gap)
			l.set(1, 150)
			ids, gaps := until(t, s, 150)
			require.Equal(t, from(last+1, 150, 1), ids)
			require.Empty(t, gaps)
			batch, err = idle.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, &job.EventGap{After: 100, Next: last + 1}, batch.Gap, "however late it looks")
		})
	}
}

func TestWithoutStreamsNothingIsRead(t *testing.T) {
	l := &ledger{}
	l.set(1, 10)
	h := begin(t, l, 1)
	require.Zero(t, l.shared.Load())
	s, err := h.Follow(t.Context(), job.EventFilter{}, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return l.shared.Load() > 1 }, patience, time.Millisecond)
	s.Close()
	require.Zero(t, h.Streams())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s = follow(t, h, job.EventFilter{})
	_, err = s.Next(ctx)
	require.True(t, errors.Is(err, context.DeadlineExceeded))
}
