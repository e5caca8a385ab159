package jobs

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func pace(live int, hears bool) *Pace {
	p := &Pace{poll: time.Second}
	p.Know(job.Crowd{Workers: live, Maintainers: live, All: live})
	p.hearing.Store(hears)
	return p
}

func TestTwoOrDeafProcessesTakeNoTurns(t *testing.T) {
	for _, p := range []*Pace{pace(0, true), pace(1, true), pace(2, true), pace(50, false)} {
		for range 100 {
			require.Zero(t, p.Turn(job.RoleWorker))
			require.InDelta(t, time.Second, p.Poll(job.RoleMaintenance), float64(100*time.Millisecond))
		}
	}
}

func TestTwoOfACrowdActOnAHintAtOnce(t *testing.T) {
	const each = 400 // hints for each process: two at once are 800 in all, give or take 28
	for _, live := range []int{3, 10, 50, 500} {
		p, atOnce := pace(live, true), 0
		var last time.Duration
		shortest, longest := p.Longest(time.Minute), time.Duration(0)
		for range each * live {
			turn, pause := p.Turn(job.RoleWorker), p.Pause(job.RoleAPI, time.Minute)
			if turn == 0 {
				atOnce++
			}
			last, shortest, longest = max(last, turn), min(shortest, pause), max(longest, pause)
		}
		require.InDelta(t, 2, float64(atOnce)/each, 0.5, live)
		require.LessOrEqual(t, last, 2*time.Second)
		require.GreaterOrEqual(t, shortest, time.Minute)
		require.LessOrEqual(t, longest, p.Longest(time.Minute))
	}
}

func TestHintsThatWaitForATurnBecomeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting, heard := make(turns), NewTypedSignal()
		defer waiting.end()
		raised := func() bool {
			synctest.Wait()
			select {
			case <-heard.Woken():
				return true
			default:
				return false
			}
		}
		ready := func(types ...string) job.Notice { return job.Notice{Hint: job.JobsReady, Types: types} }
		waiting.take(ready("A"), time.Second, heard)
		waiting.take(ready("B"), 10*time.Second, heard)
		waiting.take(job.Notice{Hint: job.GatesChanged}, 3*time.Second, NewTypedSignal())
		require.False(t, raised())
		time.Sleep(time.Second)
		require.True(t, raised(), "the first of them stands for both")
		require.Equal(t, []string{"A", "B"}, heard.Take())
		time.Sleep(time.Minute)
		require.False(t, raised())

		waiting.take(ready("A"), time.Second, heard)
		waiting.take(ready("B"), 0, heard)
		require.True(t, raised(), "at once, although one waits")
		require.Equal(t, []string{"B"}, heard.Take())
		time.Sleep(time.Minute)
		require.True(t, raised(), "which is about another type")
		require.Equal(t, []string{"A"}, heard.Take())

		waiting.take(ready("A"), time.Second, heard)
		waiting.take(ready(), 0, heard)
		require.True(t, raised(), "at once, although one waits")
		require.Nil(t, heard.Take(), "it is about any type")
		time.Sleep(time.Minute)
		require.False(t, raised(), "so that the other is done with")
	})
}

// told is a store whose limits somebody has changed without a word.
type told struct {
	Store
	limits  atomic.Pointer[[]job.Limit]
	hints   chan job.Hint
	reading atomic.Int64
}

func (s *told) Rules(context.Context) (*job.Rules, bool, error) {
	s.reading.Add(1)
	return job.NewRules(*s.limits.Load(), nil), false, nil
}

func (s *told) Send(_ context.Context, n job.Notice) error {
	s.hints <- n.Hint
	return nil
}

// The process that set a limit may end before it has told the others. Whoever of a crowd reads
// it first does so.
func TestWhoeverFindsOtherRulesTellsTheCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &told{hints: make(chan job.Hint, 10)}
		store.limits.Store(new([]job.Limit))
		cfg := Config{PollInterval: time.Second, Log: slog.New(slog.DiscardHandler)}
		m := unmeasured(t)
		p := pace(50, true)
		hints := newHints(store, cfg.Log, m, p)
		r := &rules{store: store, cfg: cfg, metrics: m, hints: hints, changed: loop.NewSignal(), pace: p}
		_, err := r.load(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			hints.run(ctx)
			close(ended)
		}()
		go r.run(ctx, hints.Heard(job.RulesChanged))
		synctest.Wait()
		require.Empty(t, store.hints, "nothing has changed")
		store.limits.Store(&[]job.Limit{{Scope: job.LimitType, Name: "T", Concurrency: new(1)}})
		time.Sleep(p.Longest(rulesInterval))
		synctest.Wait()
		require.Equal(t, job.RulesChanged, <-store.hints)
		read := store.reading.Load()
		time.Sleep(time.Hour)
		require.Empty(t, store.hints, "told once")
		require.InDelta(t, time.Hour.Seconds()/(50*rulesInterval.Seconds()), store.reading.Load()-read, 20, "and all of fifty read as often as one would")
		cancel()
		<-ended
	})
}
