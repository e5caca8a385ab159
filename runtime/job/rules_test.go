package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestWhatAPauseStops(t *testing.T) {
	for _, c := range []struct {
		pause                    job.Pause
		stopped, drained, others bool
	}{
		{pause: job.Pause{Scope: job.PauseType, Name: "A"}, stopped: true},
		{pause: job.Pause{Scope: job.PauseType, Name: "A", Drain: true}, stopped: true, drained: true},
		{pause: job.Pause{Scope: job.PauseType, Name: "B"}},
		{pause: job.Pause{Scope: job.PausePlugin, Name: "p", Drain: true}, stopped: true, drained: true},
		{pause: job.Pause{Scope: job.PausePlugin, Name: "A"}},
		{pause: job.Pause{Scope: job.PauseTenant, Name: "a"}},
		{pause: job.Pause{Scope: job.PauseTenant, Name: "a", Drain: true}, drained: true},
		{pause: job.Pause{Scope: job.PauseTenant, Name: "b", Drain: true}},
		{pause: job.Pause{Scope: job.PauseAll, Drain: true}, stopped: true, drained: true, others: true},
	} {
		rules := job.NewRules(nil, []job.Pause{c.pause})
		pause, stopped := rules.Stopped("p", "A")
		require.Equal(t, c.stopped, stopped, c.pause)
		if stopped {
			require.Equal(t, c.pause, pause)
		}
		require.Equal(t, c.drained, rules.Drained("p", "A", "a"), c.pause)
		_, stopped = rules.Stopped("q", "C")
		require.Equal(t, c.others, stopped, c.pause)
	}
	var none *job.Rules
	_, stopped := none.Stopped("p", "A")
	require.False(t, stopped)
	require.False(t, none.Drained("p", "A", "a"))
}

func TestRulesAreEqualIfTheirLimitsAndPausesAre(t *testing.T) {
	limit := func() job.Limit {
		return job.Limit{
			Scope: job.LimitType, Name: "A", Concurrency: new(1), Rate: &job.Rate{Count: 1, Period: time.Second, Burst: 1},
		}
	}
	of := func(change func(*job.Limit)) *job.Rules {
		changed := limit()
		change(&changed)
		return job.NewRules([]job.Limit{changed}, nil)
	}
	same := of(func(*job.Limit) {})
	require.True(t, same.Equal(job.NewRules([]job.Limit{limit()}, nil)))
	for _, other := range []*job.Rules{
		nil, job.NewRules(nil, nil), job.NewRules([]job.Limit{limit()}, []job.Pause{{Scope: job.PauseAll}}),
		of(func(l *job.Limit) { l.Name = "B" }), of(func(l *job.Limit) { *l.Concurrency = 2 }),
		of(func(l *job.Limit) { l.Concurrency = nil }), of(func(l *job.Limit) { l.Rate.Burst = 2 }), of(func(l *job.Limit) { l.Rate = nil }),
	} {
		require.False(t, same.Equal(other))
	}
	var none *job.Rules
	require.True(t, none.Equal(job.NewRules(nil, nil)))
}
