package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var (
	here  = job.Worker{ID: worker, Host: "host-1"}
	there = job.Worker{ID: other, Host: "host-2"}
)

func pluginEvent(t testing.TB, plugin string, kind job.PluginEventKind, ago time.Duration) job.PluginEvent {
	return job.PluginEvent{ID: newID(t), At: time.Now().Add(-ago), Plugin: plugin, Event: kind, Count: 1}
}

func TestPluginEventsAreListedNewestFirst(t *testing.T) {
	s := open(t)
	old, crash := pluginEvent(t, "mail", job.PluginStarted, time.Hour), pluginEvent(t, "mail", job.PluginCrashed, time.Minute)
	crash.Count, crash.Reason, crash.Actor, crash.Trigger = 37, "pid 7: exit\x00 status 3", "alice", job.SwapByFile
	crash.Version, crash.Digest, crash.Details = "2", "bb", json.RawMessage(`{"pid":7}`)
	elsewhere := pluginEvent(t, "print", job.PluginCrashed, time.Second)
	require.NoError(t, s.RecordPluginEvents(t.Context(), here, []job.PluginEvent{old, crash}))
	require.NoError(t, s.RecordPluginEvents(t.Context(), here, []job.PluginEvent{crash}), "as after a lost answer")
	require.NoError(t, s.RecordPluginEvents(t.Context(), there, []job.PluginEvent{elsewhere}))

	listed := func(f job.PluginEventFilter) (ids []job.ID) {
		f.Limit = max(f.Limit, 1)
		found, err := s.PluginEvents(t.Context(), f)
		require.NoError(t, err)
		for _, e := range found {
			ids = append(ids, e.ID)
		}
		return ids
	}
	require.Equal(t, []job.ID{elsewhere.ID, crash.ID, old.ID}, listed(job.PluginEventFilter{Limit: 10}))
	require.Equal(t, []job.ID{elsewhere.ID}, listed(job.PluginEventFilter{}))
	require.Equal(t, []job.ID{crash.ID, old.ID}, listed(job.PluginEventFilter{Plugin: "mail", Limit: 10}))
	require.Equal(t, []job.ID{elsewhere.ID}, listed(job.PluginEventFilter{Worker: other, Limit: 10}))
	require.Equal(t, []job.ID{elsewhere.ID, crash.ID}, listed(job.PluginEventFilter{Event: job.PluginCrashed, Limit: 10}))
	require.Equal(t, []job.ID{crash.ID}, listed(job.PluginEventFilter{Plugin: "mail", Event: job.PluginCrashed, Worker: worker, Limit: 10}))

	found, err := s.PluginEvents(t.Context(), job.PluginEventFilter{Plugin: "mail", Limit: 1})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-time.Minute), found[0].At, 50*time.Second)
	position := job.PluginEventPosition{At: found[0].At, ID: found[0].ID}
	require.Equal(t, []job.ID{old.ID}, listed(job.PluginEventFilter{Before: position, Limit: 10}))
	require.Equal(t, []job.ID{old.ID}, listed(job.PluginEventFilter{Before: job.PluginEventPosition{At: found[0].At.Add(-time.Second)}, Plugin: "mail", Limit: 10}))
	want := crash
	want.At, want.Worker, want.Host, want.Reason = found[0].At, worker, "host-1", "pid 7: exit\uFFFD status 3"
	require.Equal(t, want, found[0])
}

func TestOldPluginEventsAreForgottenInPortions(t *testing.T) {
	s := open(t)
	young := pluginEvent(t, "mail", job.PluginCrashed, time.Hour)
	events := []job.PluginEvent{young}
	for range 3 {
		events = append(events, pluginEvent(t, "mail", job.PluginCrashed, 31*24*time.Hour))
	}
	require.NoError(t, s.RecordPluginEvents(t.Context(), here, events))
	for _, want := range []int{2, 1, 0} {
		deleted, err := s.ForgetPluginEvents(t.Context(), 30*24*time.Hour, 2)
		require.NoError(t, err)
		require.Equal(t, want, deleted)
	}
	left, err := s.PluginEvents(t.Context(), job.PluginEventFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, young.ID, left[0].ID)
}
