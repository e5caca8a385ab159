package plugintest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait waits for its context's end and returns the cause.
func wait(ctx context.Context, j plugin.Job[any]) error {
	if err := j.Progress("running"); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestOutcomesAreNamedAsTheLedgerNamesThem(t *testing.T) {
	for _, outcome := range []plugintest.Outcome{
		plugintest.Succeeded, plugintest.Failed, plugintest.Permanent, plugintest.TimedOut,
		plugintest.Canceled, plugintest.Snoozed, plugintest.Released, plugintest.Crashed,
	} {
		require.Contains(t, job.OutcomeKinds(), job.OutcomeKind(outcome))
	}
}

func TestWhatAHandlerReturnsIsTheResult(t *testing.T) {
	fault := errors.New("no paper")
	for want, do := range map[string]func() (any, error){
		`succeeded: {"pages":3}`:           func() (any, error) { return map[string]int{"pages": 3}, nil },
		"failed: no paper":                 func() (any, error) { return nil, fault },
		"failed (empty): no paper":         func() (any, error) { return nil, plugin.Code(fault, "empty") },
		"permanent: no paper":              func() (any, error) { return nil, plugin.Permanent(fault) },
		"canceled":                         func() (any, error) { return nil, plugin.Cancel(fault) },
		"failed (panic): panic: on fire":   func() (any, error) { panic("on fire") },
		"permanent (bad_result): result: ": func() (any, error) { return make(chan int), nil },
	} {
		h := plugintest.Start(t, plugin.HandleResult("DO", func(context.Context, plugin.Job[any]) (any, error) { return do() }))
		require.Contains(t, h.Run(t.Context(), plugintest.Job{}).String(), want)
	}
}

func TestWishesForTheNextAttempt(t *testing.T) {
	h := plugintest.Start(t,
		plugin.Handle("SNOOZE", func(context.Context, plugin.Job[any]) error { return plugin.Snooze(time.Minute) }),
		plugin.Handle("LATER", func(context.Context, plugin.Job[any]) error {
			return plugin.RetryAfter(errors.New("busy"), time.Hour)
		}))
	snoozed := h.Run(t.Context(), plugintest.Job{Type: "SNOOZE"})
	require.Equal(t, plugintest.Snoozed, snoozed.Outcome)
	require.Equal(t, time.Minute, *snoozed.RetryAfter)
	later := h.Run(t.Context(), plugintest.Job{Type: "LATER"})
	require.Equal(t, plugintest.Failed, later.Outcome)
	require.Equal(t, time.Hour, *later.RetryAfter)
}

func TestTheHandlerSeesTheJobOfTheTest(t *testing.T) {
	seen := make(chan plugin.Job[any], 2)
	h := plugintest.Start(t, plugin.Handle("SEE", func(ctx context.Context, j plugin.Job[any]) error {
		seen <- j
		parent, state := plugin.TraceContext(ctx)
		var at int
		found, err := j.Resume(&at)
		plugin.Logger(ctx).Warn("seen", "parent", parent, "state", state, "found", found, "at", at)
		return err
	}, plugin.MaxAttempts(7)))

	created := time.Date(2026, 2, 20, 1, 2, 3, 0, time.UTC)
	result := h.Run(t.Context(), plugintest.Job{
		Type: "SEE", Payload: json.RawMessage(`{"a": 1.0}`), ID: "an-id", Tenant: "acme", Attempt: 3, MaxAttempts: 5,
		Fence: 77, Checkpoint: 12, TraceParent: "00-1-2-01", TraceState: "s", CreatedAt: created,
	})
	j := <-seen
	require.Equal(t, `{"a": 1.0}`, string(j.Payload), "to the letter")
	require.Equal(t, []any{"an-id", "SEE", "acme", 3, 5, int64(77)}, []any{j.ID, j.Type, j.Tenant, j.Attempt, j.MaxAttempts, j.Fence})
	require.True(t, created.Equal(j.CreatedAt))
	require.Equal(t, []plugintest.LogRecord{{
		Level: slog.LevelWarn, Message: "seen",
		Attributes: map[string]any{"parent": "00-1-2-01", "state": "s", "found": true, "at": 12.0},
	}}, result.Logs)

	require.Equal(t, plugintest.Succeeded, h.Run(t.Context(), plugintest.Job{}).Outcome)
	usual := <-seen
	require.Equal(t, []any{"default", 1, 7, "null"}, []any{usual.Tenant, usual.Attempt, usual.MaxAttempts, string(usual.Payload)})
	require.NotEqual(t, j.ID, usual.ID)
}

func TestAnAttemptIsStoppedAsAnOrchestratorStopsIt(t *testing.T) {
	for cause, want := range map[error]plugintest.Outcome{
		plugin.ErrCanceled: plugintest.Canceled, plugin.ErrTimeout: plugintest.TimedOut,
		plugin.ErrShutdown: plugintest.Released, plugin.ErrLeaseLost: plugintest.Released,
	} {
		h := plugintest.Start(t, plugin.Handle("WAIT", wait))
		a := h.Begin(plugintest.Job{})
		require.JSONEq(t, `"running"`, string(a.Progress(t.Context())))
		a.Stop(cause)
		a.Stop(plugin.ErrCanceled) // too late
		require.Equal(t, want, a.Wait().Outcome, cause)
	}
}

func TestTheEndOfTheContextCancelsTheAttempt(t *testing.T) {
	h := plugintest.Start(t, plugin.Handle("WAIT", wait))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, plugintest.Canceled, h.Run(ctx, plugintest.Job{}).Outcome)
}

func TestTimeGoesByTheBubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.Handle("WAIT", wait, plugin.Timeout(24*time.Hour)))
		result := h.Run(t.Context(), plugintest.Job{})
		require.Equal(t, plugintest.TimedOut, result.Outcome, "the lease is extended all day")
		require.Equal(t, 24*time.Hour, result.Took)
		require.Equal(t, time.Minute, h.Run(t.Context(), plugintest.Job{Timeout: time.Minute}).Took)
		require.Equal(t, 24*time.Hour, h.Types()[0].Timeout)
	})
}

func TestALeaseThatNobodyExtendsStopsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.Handle("WAIT", wait, plugin.Timeout(time.Hour)))
		a := h.Begin(plugintest.Job{Lease: 12 * time.Second})
		a.FallSilent()
		result := a.Wait()
		require.Equal(t, "given_back (lease_lost): lease lost", result.String())
		require.Equal(t, 10*time.Second, result.Took, "a sixth of the lease is left")
	})
}

func TestAHandlerThatIgnoresItsContextWouldBeKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.Handle("SLEEP", func(context.Context, plugin.Job[any]) error {
			time.Sleep(time.Minute)
			return nil
		}))
		a := h.Begin(plugintest.Job{})
		a.Stop(plugin.ErrCanceled)
		result := a.Wait()
		require.Equal(t, plugintest.Crashed, result.Outcome)
		require.Equal(t, 5*time.Second, result.Took)
		require.Contains(t, result.Message, "an orchestrator kills its process")
		time.Sleep(time.Minute)
		require.Equal(t, plugintest.Succeeded, h.Run(t.Context(), plugintest.Job{Timeout: 2 * time.Minute}).Outcome)

		silent := h.Begin(plugintest.Job{Lease: time.Second, Timeout: 2 * time.Minute})
		silent.FallSilent()
		require.Regexp(t, "^crashed: the process would exit: the lease of job .* ran out", silent.Wait().String())
		time.Sleep(time.Minute)
	})
}

func TestADrainLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.Handle("SLEEP", func(ctx context.Context, j plugin.Job[time.Duration]) error {
			select {
			case <-time.After(j.Args):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, plugin.Timeout(time.Hour)))
		short := h.Begin(plugintest.Job{Payload: time.Second})
		long := h.Begin(plugintest.Job{Payload: time.Minute})
		hasty, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, h.Drain(hasty), context.DeadlineExceeded)
		require.Equal(t, plugintest.Succeeded, short.Wait().Outcome)
		long.Stop(plugin.ErrShutdown)
		require.NoError(t, h.Drain(t.Context()))
		require.Equal(t, plugintest.Released, long.Wait().Outcome)
	})
}

func TestTypesAreAsDeclared(t *testing.T) {
	h := plugintest.Start(t,
		plugin.Handle("B", wait),
		plugin.Handle("A", func(context.Context, plugin.Job[Args]) error { return nil }, plugin.MaxAttempts(2),
			plugin.Description("prints"), plugin.Concurrency(3)))
	require.Equal(t, []any{"A", "prints", 3}, []any{h.Types()[0].Name, h.Types()[0].Description, h.Types()[0].Concurrency})
	require.Equal(t, 2, h.Types()[0].MaxAttempts)
	require.Contains(t, string(h.Types()[0].Schema), `"pages"`)
	require.Empty(t, h.Types()[1].Schema)
}

// spy is a test that fails on purpose.
type spy struct {
	testing.TB
	said     []string
	cleanups []func()
}

type fatal struct{}

func (s *spy) Helper() {}
func (s *spy) Errorf(format string, values ...any) {
	s.said = append(s.said, fmt.Sprintf(format, values...))
}

func (s *spy) Fatalf(format string, values ...any) {
	s.Errorf(format, values...)
	panic(fatal{})
}
func (s *spy) Fatal(values ...any) { s.Fatalf("%s", fmt.Sprint(values...)) }
func (s *spy) Cleanup(f func())    { s.cleanups = append(s.cleanups, f) }

// spied returns what the test has said.
func spied(do func(t testing.TB)) string {
	s := &spy{}
	func() {
		defer func() {
			if problem := recover(); problem != nil && problem != (fatal{}) {
				panic(problem)
			}
		}()
		do(s)
	}()
	for _, f := range s.cleanups {
		f()
	}
	return strings.Join(s.said, "\n")
}

func TestMistakesOfTheTestAreSaid(t *testing.T) {
	for want, do := range map[string]func(testing.TB){
		"there is no handler to serve":    func(t testing.TB) { plugintest.Start(t) },
		`job type "A" has two handlers`:   func(t testing.TB) { plugintest.Start(t, plugin.Handle("A", wait), plugin.Handle("A", wait)) },
		"payload: json: unsupported":      func(t testing.TB) { started(t).Begin(plugintest.Job{Payload: t.Name}) },
		"checkpoint: json: unsupported":   func(t testing.TB) { started(t).Begin(plugintest.Job{Checkpoint: t.Name}) },
		"the cause is not one of package": func(t testing.TB) { started(t).Begin(plugintest.Job{}).Stop(context.Canceled) },
		"and there is more than one": func(t testing.TB) {
			plugintest.Start(t, plugin.Handle("A", wait), plugin.Handle("B", wait)).Begin(plugintest.Job{})
		},
		"accept no more": func(t testing.TB) {
			h := started(t)
			_ = h.Drain(context.Background())
			h.Begin(plugintest.Job{})
		},
	} {
		require.Contains(t, spied(do), want)
	}
}

func started(t testing.TB) *plugintest.Harness { return plugintest.Start(t, plugin.Handle("A", wait)) }

func TestATestFailsWhoseHandlersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := spied(func(t testing.TB) {
			plugintest.Start(t, plugin.Handle("SLEEP", func(_ context.Context, j plugin.Job[any]) error {
				_ = j.Progress(1)
				time.Sleep(time.Hour)
				return nil
			})).Begin(plugintest.Job{ID: "seven"}).Progress(context.Background())
		})
		require.Contains(t, said, "the handler still runs for [job seven of type SLEEP] 5s after its context has ended")
		time.Sleep(time.Hour)
	})
}

func TestTheEndOfATestEndsItsHandlers(t *testing.T) {
	var cause error
	t.Run("", func(t *testing.T) {
		plugintest.Start(t, plugin.Handle("WAIT", func(ctx context.Context, j plugin.Job[any]) error {
			cause = wait(ctx, j)
			return cause
		})).Begin(plugintest.Job{}).Progress(t.Context())
	})
	require.ErrorIs(t, cause, plugin.ErrLeaseLost)
}
