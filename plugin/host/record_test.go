package host

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// recorded are the events of a host.
type recorded struct {
	mu     sync.Mutex
	events []job.PluginEvent
}

func (r *recorded) add(e job.PluginEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorded) kinds() (kinds []job.PluginEventKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		kinds = append(kinds, e.Event)
	}
	return kinds
}

// only returns the one event of the kind.
func (r *recorded) only(t *testing.T, kind job.PluginEventKind) job.PluginEvent {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	found := slices.Collect(func(yield func(job.PluginEvent) bool) {
		for _, e := range r.events {
			if e.Event == kind && !yield(e) {
				return
			}
		}
	})
	require.Len(t, found, 1, kind)
	return found[0]
}

func recording(t *testing.T, change func(*Config), flags ...string) (*versioned, *testHost, *recorded) {
	t.Helper()
	v, r := newVersioned(t), &recorded{}
	v.install(flags...)
	config := v.config()
	config.Watch = false
	if change != nil {
		change(&config)
	}
	return v, startHost(t, func(s *Settings) { s.Happened = r.add }, config), r
}

func TestASwapIsRecordedWithItsVerdictAndWhoAskedForIt(t *testing.T) {
	t.Parallel()
	v, h, r := recording(t, nil, "-version", "1")
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	s, err := h.Swap(job.WithActor(t.Context(), "token ops"), "plugin", false)
	require.NoError(t, err)
	require.Equal(t, job.SwapPromoted, s.Result)
	require.Equal(t, []job.PluginEventKind{
		job.PluginStarted, job.PluginSwapBegan, job.PluginTrialBegan, job.PluginTrialPassed, job.PluginPromoted,
	}, r.kinds())
	require.Equal(t, "1", r.only(t, job.PluginStarted).Version)
	ended := r.only(t, job.PluginPromoted)
	require.Equal(t, "plugin", ended.Plugin)
	require.Equal(t, "2", ended.Version)
	require.Equal(t, s.To.SHA256, ended.Digest)
	require.Equal(t, job.SwapByRequest, ended.Trigger)
	require.Equal(t, "token ops", ended.Actor)
	require.WithinDuration(t, time.Now(), ended.At, patience)
	var told v1.PluginSwap
	require.NoError(t, json.Unmarshal(ended.Details, &told))
	require.Equal(t, s.From, told.From)

	require.NoError(t, h.Disable(job.WithActor(t.Context(), "alice"), "plugin"))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, "alice", r.only(t, job.PluginWasDisabled).Actor)
	require.Equal(t, s.To.SHA256, r.only(t, job.PluginWasEnabled).Digest)
}

func TestARollbackIsRecordedWithoutWhatTheProcessPrinted(t *testing.T) {
	t.Parallel()
	v, h, r := recording(t, nil, "-version", "1")
	h.awaitUp("plugin", 1)
	v.install("-version", "2", "-mode", "panic")
	s := h.swap(false)
	require.Equal(t, job.SwapRolledBack, s.Result)
	require.Contains(t, s.Reason, "panic: ", "the operator of this orchestrator sees it")
	ended := r.only(t, job.PluginRolledBack)
	require.Equal(t, "it ended during its start: exit status 2", ended.Reason)
	require.NotContains(t, string(ended.Details), "panic")
	require.Equal(t, ended.Reason, r.only(t, job.PluginLaunchFailed).Reason)
}

func TestCrashesAndTheBreakerAreRecorded(t *testing.T) {
	t.Parallel()
	v, h, r := recording(t, nil, "-version", "1")
	h.awaitUp("plugin", 1)
	require.Equal(t, job.Crash, h.run("plugin", do("exit")).Kind)
	h.eventually(func() bool { return slices.Contains(r.kinds(), job.PluginCrashed) }, "the crash is recorded")
	require.Contains(t, r.only(t, job.PluginCrashed).Reason, "exit status")
	_, h, r = recording(t, func(c *Config) { c.Name = "broken" }, "-mode", "exit")
	h.eventually(func() bool { return slices.Contains(r.kinds(), job.PluginBroke) }, "the breaker opens")
	broke := r.only(t, job.PluginBroke)
	require.NotEmpty(t, broke.Reason)
	var breaker v1.PluginBreaker
	require.NoError(t, json.Unmarshal(broke.Details, &breaker))
	require.True(t, breaker.Open)
	require.GreaterOrEqual(t, breaker.Failures, 3)
	require.NotNil(t, breaker.NextLaunchAt)
	_ = v
}
