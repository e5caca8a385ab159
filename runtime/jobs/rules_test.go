package jobs

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// eventually waits for what polling finds.
func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, what)
}

// beside returns another service on the same database, which hears no hints and polls only
// as often as it must.
func (d *direct) beside(t *testing.T) *Service {
	t.Helper()
	s, err := New(Config{
		PollInterval: time.Hour, PollOnly: true, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
		Resolve: func(spec job.TypeSpec) job.TypeSpec { return spec },
	}, d.ledger)
	require.NoError(t, err)
	require.Nil(t, s.Rules(), "nothing is known")
	running(t, s.Run)
	return s
}

func TestRulesAreInForceHereAtOnceAndElsewhereWithoutHints(t *testing.T) {
	here, heard := open(t)
	there := here.beside(t)
	eventually(t, func() bool { return there.Rules() != nil }, "the rules are read at the start")

	pause, err := here.SetPause(t.Context(), job.Pause{Scope: job.PauseType, Name: "A"}, 0)
	require.NoError(t, err)
	require.Equal(t, []job.Pause{pause}, here.Rules().Pauses())
	require.ElementsMatch(t, []job.Hint{job.RulesChanged, job.GatesChanged}, []job.Hint{<-heard, <-heard})
	<-there.RulesChanged() // the first ones, or these
	eventually(t, func() bool { _, paused := there.Rules().Stopped("p", "A"); return paused }, "the pause is read")

	limit, err := here.SetLimit(t.Context(), job.Limit{Scope: job.LimitTenant, Name: "a", Concurrency: new(1)})
	require.NoError(t, err)
	require.NoError(t, here.SyncLimits(t.Context(), []job.Limit{{Scope: job.LimitType, Name: "A", Fair: true}}))
	require.Len(t, here.Rules().Limits(), 2)
	require.NoError(t, here.DeleteLimit(t.Context(), limit.Scope, limit.Name))
	require.NoError(t, here.EndPause(t.Context(), pause.Scope, pause.Name))
	require.Empty(t, here.Rules().Pauses())
	eventually(t, func() bool { return there.Rules().Equal(here.Rules()) }, "all of it is read")

	require.ErrorIs(t, here.EndPause(t.Context(), pause.Scope, pause.Name), job.ErrNoPause)
	require.ErrorIs(t, here.DeleteLimit(t.Context(), job.LimitType, "A"), job.ErrConfigured)
}

func TestWhoeverNoticesFirstEndsAPauseThatIsOver(t *testing.T) {
	here, _ := open(t)
	_, err := here.SetPause(t.Context(), job.Pause{Scope: job.PauseTenant, Name: "a"}, time.Millisecond)
	require.NoError(t, err)
	eventually(t, func() bool {
		found, expired, err := here.ledger.Rules(t.Context())
		return err == nil && !expired && len(found.Pauses()) == 0
	}, "it is deleted")
	eventually(t, func() bool { return len(here.Rules().Pauses()) == 0 }, "it is not in force any more")
}
