package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// book has commands, and what becomes of them. It can be away.
type book struct {
	mu        sync.Mutex
	away      error
	waiting   []job.TakenCommand
	outcomes  []job.PluginOutcome
	described [][]v1.Plugin
}

func (b *book) setAway(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = err
}

func (b *book) TakePluginCommands(context.Context, string) ([]job.TakenCommand, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != nil {
		return nil, b.away
	}
	taken := b.waiting
	b.waiting = nil
	return taken, nil
}

func (b *book) EndPluginCommand(_ context.Context, _ job.ID, _ string, outcome job.PluginOutcome) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away == nil {
		b.outcomes = append(b.outcomes, outcome)
	}
	return b.away
}

func (b *book) DescribePlugins(_ context.Context, _ string, plugins []v1.Plugin) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away == nil {
		b.described = append(b.described, plugins)
	}
	return b.away
}

// stage is a host with one plugin.
type stage struct {
	Host
	plugin v1.Plugin
	swap   v1.PluginSwap
	err    error
	actor  string
	swaps  int
	// lasts is how long a swap takes.
	lasts time.Duration
}

func (s *stage) Report() []v1.Plugin { return []v1.Plugin{s.plugin} }

func (s *stage) Swap(ctx context.Context, _ string, _ bool) (v1.PluginSwap, error) {
	s.swaps++
	s.actor = job.Actor(ctx)
	select {
	case <-time.After(s.lasts):
		return s.swap, s.err
	case <-ctx.Done():
		return v1.PluginSwap{}, ctx.Err()
	}
}

func (s *stage) Enable(context.Context, string, bool) error { return s.err }

func TestTheResultOfACommandIsThatOfTheHost(t *testing.T) {
	begun := time.Now()
	rolledBack := v1.PluginSwap{BegunAt: begun, Result: job.SwapRolledBack, Reason: "it printed: s3cret"}
	plain := rolledBack
	plain.Reason = "exit status 3"
	swap := job.TakenCommand{Plugin: "mail", Verb: job.SwapPlugin, Within: time.Minute}
	for name, c := range map[string]struct {
		host    *stage
		command job.TakenCommand
		result  job.PluginResult
		reason  string
	}{
		"promoted": {&stage{swap: v1.PluginSwap{BegunAt: begun, Result: job.SwapPromoted}}, swap, job.CommandDone, ""},
		"rolled back": {
			&stage{swap: rolledBack, plugin: v1.Plugin{Name: "mail", LastSwap: &plain}}, swap, job.CommandFailed, "exit status 3",
		},
		"rolled back, and another swap begun since": {&stage{swap: rolledBack}, swap, job.CommandFailed, "see the log of the orchestrator"},
		"no such plugin": {&stage{err: job.ErrNoPlugin}, swap, job.CommandRefused, job.ErrNoPlugin.Error()},
		"not enabled":    {&stage{err: errors.New("no file")}, job.TakenCommand{Verb: job.EnablePlugin, Within: time.Minute}, job.CommandRefused, "no file"},
		"unknown": {
			&stage{}, job.TakenCommand{Verb: "explode", Within: time.Minute}, job.CommandRefused, "this version of the orchestrator does not know the command",
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := (&Commander{Host: c.host}).do(t.Context(), c.command)
			require.Equal(t, c.result, outcome.Result)
			require.Equal(t, c.reason, outcome.Reason)
			require.NotContains(t, string(outcome.Swap), "s3cret")
		})
	}
}

func TestACommandWaitsForTheDatabaseAndIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{away: errors.New("away"), waiting: []job.TakenCommand{{Plugin: "mail", Verb: job.SwapPlugin, Actor: "alice", Within: time.Minute}}}
		host := &stage{swap: v1.PluginSwap{BegunAt: time.Now(), Result: job.SwapPromoted}, lasts: 5 * time.Second}
		c := &Commander{Store: b, Host: host, Wake: loop.NewSignal(), Pause: loop.Jittered, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { c.Run(ctx); close(ended) }()
		c.Wake.Raise()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, host.swaps, "what was not taken on is not carried out")
		b.setAway(nil)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, host.swaps)
		require.Equal(t, "alice", host.actor)
		b.setAway(errors.New("away"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, b.outcomes)
		b.setAway(nil)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Len(t, b.outcomes, 1)
		require.Equal(t, 1, host.swaps, "once")
		cancel()
		<-ended
	})
}

func TestACommandThatIsNotDoneByItsDeadlineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &stage{lasts: time.Hour}
		outcome := func() job.PluginOutcome {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return (&Commander{Host: host}).do(ctx, job.TakenCommand{Verb: job.SwapPlugin})
		}()
		require.Equal(t, job.PluginOutcome{Result: job.CommandFailed, Reason: "it was not done by the deadline"}, outcome)
	})
}

func TestPluginsAreDescribedSoonAfterTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		var mu sync.Mutex
		plugin := v1.Plugin{Name: "mail"}
		change := func(do func()) { mu.Lock(); defer mu.Unlock(); do() }
		d := &Describer{Store: b, Journal: NewJournal(), Log: slog.New(slog.DiscardHandler), Report: func() []v1.Plugin {
			mu.Lock()
			defer mu.Unlock()
			return []v1.Plugin{plugin}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.Run(ctx); close(ended) }()
		written := func(after time.Duration) int {
			time.Sleep(after)
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			n := len(b.described)
			b.described = nil
			return n
		}
		require.Equal(t, 1, written(20*time.Second), "nothing changes")
		change(func() { plugin.Crashes++ })
		d.Journal.Add(crash("mail"))
		require.Equal(t, 1, written(leastDescribePause), "at once after an event")
		for range 10 {
			change(func() { plugin.Running++ })
			require.LessOrEqual(t, written(time.Second), 1)
		}
		change(func() { plugin.Running++ })
		require.NotZero(t, written(figuresInterval), "figures are described too")
		b.setAway(errors.New("away"))
		change(func() { plugin.Crashes++ })
		require.Zero(t, written(time.Minute))
		b.setAway(nil)
		require.NotZero(t, written(3*time.Second))
		last, err := json.Marshal(plugin)
		require.NoError(t, err)
		require.Contains(t, string(last), `"crashes":2`)
		cancel()
		<-ended
	})
}
