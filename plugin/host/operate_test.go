package host

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestARestartReplacesTheProcessesAndHarmsNothing(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Watch, config.Canary.Period = false, time.Hour // a restart is no trial
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	before := h.status("plugin")
	v.install("-version", "2") // the serving version restarts, not the one in the file
	load := h.load(4)
	for range 3 {
		swap, err := h.Restart(t.Context(), "plugin")
		require.NoError(t, err)
		require.Equal(t, job.SwapPromoted, swap.Result, swap.Reason)
		require.Equal(t, job.SwapByRestart, swap.Trigger)
		require.Equal(t, swap.From, swap.To)
	}
	load.end(t)
	require.Zero(t, load.onTrial.Load())
	now := h.status("plugin")
	require.Equal(t, before.PluginVersion, now.PluginVersion)
	require.NotEqual(t, before.PIDs, now.PIDs)
	h.eventually(func() bool { return !alive(before.PIDs[0]) }, "the old process stops")
}

func TestADisabledPluginFinishesAndStaysVisible(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	h := startHost(t, nil, v.config())
	_, r := h.begin("plugin", `{"do":"sleep","ms":300}`)
	pid := h.status("plugin").PIDs[0]
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.Empty(t, h.Pools())
	_, err := h.Start("plugin", assignment(`{}`), newReport())
	require.ErrorIs(t, err, ErrNoSlot)
	require.Equal(t, job.Success, h.outcome(r).Kind)
	h.eventually(func() bool { return !alive(pid) }, "its process stops")

	v.install("-version", "2")
	require.Equal(t, job.SwapRefused, h.swap(false).Result)
	status := h.status("plugin")
	require.Equal(t, job.PluginDisabled, status.State)
	require.Equal(t, "1", status.Version)
	require.Equal(t, []string{"TEST"}, status.JobTypes)
	require.Empty(t, status.PIDs)
	shown, err := json.Marshal(status)
	require.NoError(t, err)
	require.NotContains(t, string(shown), "null", "a list without items is []")
	require.Equal(t, time.UTC, status.LastSwap.BegunAt.Location())
	require.Equal(t, time.UTC, status.LastSwap.EndedAt.Location())
	require.Len(t, h.Types(), 1)

	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, "2", h.status("plugin").Version)
	require.ErrorIs(t, h.Disable(t.Context(), "nobody"), job.ErrNoPlugin)
}

func TestDisablingEndsASwap(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Canary.Period = time.Hour
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	h.eventually(func() bool { return h.status("plugin").Candidate != nil }, "a swap begins")
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	last := h.status("plugin").LastSwap
	require.Equal(t, job.SwapAbandoned, last.Result)
	require.Equal(t, "the plugin was disabled", last.Reason)
	h.eventually(func() bool { return len(processesOf(h.dir)) == 0 }, "no process is left")
}

func TestACallerThatStopsWaitingGetsItsOwnSwap(t *testing.T) {
	t.Parallel()
	h, _ := onTrial(t, time.Hour, nil)
	waiting, giveUp := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer giveUp()
	for _, do := range []func() (v1.PluginSwap, error){
		func() (v1.PluginSwap, error) { return h.Swap(waiting, "plugin", false) },
		func() (v1.PluginSwap, error) { return h.Restart(waiting, "plugin") },
	} {
		swap, err := do()
		require.ErrorContains(t, err, "another swap is under way")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, swap)
	}
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	ended := h.status("plugin").LastSwap
	require.NoError(t, h.Enable(t.Context(), "plugin", false)) // runs after all earlier orders
	require.Equal(t, ended, h.status("plugin").LastSwap, "nothing comes of what was given up before it began")
}

func TestAnEnableThatTimedOutDoesNothing(t *testing.T) {
	t.Parallel()
	_, h := versionOne(t)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	busy, idle := make(chan struct{}), make(chan struct{})
	require.NotNil(t, h.fleet("plugin").order(func(*conductor) { <-busy }))
	waiting, giveUp := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer giveUp()
	err := h.Enable(waiting, "plugin", true)
	require.ErrorContains(t, err, "another swap is under way")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(busy)
	require.NotNil(t, h.fleet("plugin").order(func(*conductor) { close(idle) }))
	<-idle
	require.Equal(t, job.PluginDisabled, h.status("plugin").State)
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	h.awaitUp("plugin", 1)
}

func TestAnEnableThatHasBegunReturnsItsResult(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	h := startHost(t, func(s *Settings) { s.WatchPeriod = time.Hour }, v.config()) // the conductor waits for orders only
	h.awaitUp("plugin", 1)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	f := h.fleet("plugin")
	err := errWaiting
	for errors.Is(err, errWaiting) { // the order had not begun when the time was over
		waiting, giveUp := context.WithTimeout(t.Context(), 100*time.Millisecond)
		answered := make(chan error, 1)
		f.mu.Lock() // enabling needs this lock
		go func() { answered <- h.Enable(waiting, "plugin", false) }()
		<-waiting.Done()
		f.mu.Unlock()
		err = <-answered
		giveUp()
	}
	require.NoError(t, err)
	h.awaitUp("plugin", 1)
}

func TestReloadStartsStopsAndReplaces(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	kept, removed := v.config(), misbehaving("removed", "-types", "REMOVED")
	kept.Watch, kept.Canary.Period = false, 0
	h := startHost(t, nil, kept, removed)
	h.awaitUp("plugin", 1)
	_, r := h.begin("removed", `{"do":"sleep","ms":300}`)
	pids := h.status("plugin").PIDs

	require.NoError(t, h.Reload([]Config{kept, misbehaving("added", "-types", "REMOVED")}))
	require.Equal(t, job.Success, h.outcome(r).Kind)
	require.Equal(t, job.Success, h.run("added", `{}`).Kind)
	_, err := h.Start("removed", assignment(`{}`), newReport())
	require.ErrorIs(t, err, ErrNoSlot)
	require.Len(t, h.Status(), 2)
	require.Equal(t, pids, h.status("plugin").PIDs, "nothing has changed for it")
	require.Nil(t, h.status("plugin").LastSwap)

	changed := kept
	changed.Env = append([]string{"GIVEN=now"}, kept.Env...)
	changed.Processes = 2
	require.NoError(t, h.Reload([]Config{changed}))
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapPromoted, swap.Result, swap.Reason)
	require.Equal(t, job.SwapByConfig, swap.Trigger)
	require.Contains(t, string(h.run("plugin", do("environment")).Result), "GIVEN=now")
	require.Len(t, h.status("plugin").PIDs, 2)

	v.install("-version", "2")
	require.NoError(t, h.Reload([]Config{changed}))
	require.Equal(t, "2", h.awaitSwap(&swap).To.Version, "a reload looks at the file too")

	broken := changed
	broken.Processes = 0
	require.Error(t, h.Reload([]Config{broken}))
	missing := misbehaving("missing")
	missing.Path = "/no/such/binary"
	require.Error(t, h.Reload([]Config{changed, missing}))
	require.Len(t, h.Status(), 1)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
}

func TestAPluginCanBeRemovedAndAddedAgain(t *testing.T) {
	t.Parallel()
	good := misbehaving("good")
	h := startHost(t, nil, good)
	for range 3 {
		require.Equal(t, job.Success, h.run("good", `{}`).Kind)
		_, r := h.begin("good", `{"do":"sleep","ms":200}`)
		require.NoError(t, h.Reload(nil))
		require.Empty(t, h.Status())
		require.NoError(t, h.Reload([]Config{good}))
		require.Equal(t, job.Success, h.outcome(r).Kind)
	}
}

// The second of two swaps waits for the trial of the first.
func TestDisablingDoesNotWaitForSwaps(t *testing.T) {
	t.Parallel()
	h, first := onTrial(t, time.Hour, nil)
	second := make(chan v1.PluginSwap, 1)
	go func() {
		s, _ := h.Swap(t.Context(), "plugin", false)
		second <- s
	}()
	f := h.fleet("plugin")
	h.eventually(func() bool {
		f.orders.mu.Lock()
		defer f.orders.mu.Unlock()
		return len(f.orders.waiting) == 1
	}, "the second swap waits")
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	for _, done := range []<-chan v1.PluginSwap{first, second} {
		s := <-done
		require.Equal(t, job.SwapAbandoned, s.Result)
		require.Equal(t, "the plugin was disabled", s.Reason)
	}
	require.Equal(t, job.PluginDisabled, h.status("plugin").State)
	require.Empty(t, h.Pools())
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	h.awaitUp("plugin", 1)
	require.Equal(t, "2", h.status("plugin").Version)
}

func TestARestartDoesNotRetryARolledBackVersion(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t)
	v.install("-version", "2", "-mode", "exit")
	require.Equal(t, job.SwapRolledBack, h.awaitSwap(nil).Result)
	restart, err := h.Restart(t.Context(), "plugin")
	require.NoError(t, err)
	require.Equal(t, job.SwapPromoted, restart.Result)
	for range 20 { // for longer than a file must be stable
		require.Equal(t, job.Success, h.run("plugin", `{"do":"sleep","ms":20}`).Kind)
	}
	last := h.status("plugin").LastSwap
	require.Equal(t, restart.BegunAt, last.BegunAt, "a swap nobody asked for: %s", last.Reason)

	v.install("-version", "3")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(last).Result)
}
