package store

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fleet registers two workers with the plugin mail, one of which also has print.
func fleet(t testing.TB, s *Store) {
	t.Helper()
	for _, w := range []job.Worker{here, there} {
		w.Roles = job.AllRoles()
		require.NoError(t, s.RegisterWorker(t.Context(), w, aMinute))
	}
	require.NoError(t, s.DescribePlugins(t.Context(), here.ID, []v1.Plugin{{Name: "mail"}, {Name: "print"}}))
	require.NoError(t, s.DescribePlugins(t.Context(), there.ID, []v1.Plugin{{Name: "mail"}}))
}

func command(t testing.TB, plugin string, verb job.PluginVerb) job.PluginCommand {
	return job.PluginCommand{ID: newID(t), Plugin: plugin, Verb: verb, Actor: "alice", Reason: "why", Within: time.Minute}
}

func results(c job.PluginCommand) map[string]job.PluginResult {
	found := make(map[string]job.PluginResult)
	for _, o := range c.Outcomes {
		found[o.Worker] = o.Result
	}
	return found
}

func TestThePluginsOfAllWorkersAreTheLatestThatTheyDescribed(t *testing.T) {
	s := open(t)
	fleet(t, s)
	require.NoError(t, s.DescribePlugins(t.Context(), here.ID, []v1.Plugin{{Name: "mail", Crashes: 3}}))
	require.NoError(t, s.DescribePlugins(t.Context(), "nobody", []v1.Plugin{{Name: "mail"}}))
	found, err := s.PluginsEverywhere(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, here.ID, found[0].WorkerID)
	require.Equal(t, job.WorkerAlive, found[0].Condition)
	require.Equal(t, 3, found[0].Plugins[0].Crashes)
	require.NotNil(t, found[1].DescribedAt)
}

func TestEachWorkerTakesACommandOnceUntilItsDeadline(t *testing.T) {
	s := open(t)
	fleet(t, s)
	asked := command(t, "mail", job.RestartPlugin)
	stored, err := s.CommandPlugin(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, map[string]job.PluginResult{here.ID: job.CommandWaiting, there.ID: job.CommandWaiting}, results(stored))
	again, err := s.CommandPlugin(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, stored, again, "as after a lost answer")

	var mu sync.Mutex
	var taken []job.TakenCommand
	var racers sync.WaitGroup
	for range 8 {
		racers.Go(func() {
			got, err := s.TakePluginCommands(t.Context(), here.ID)
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, got...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	racers.Wait()
	require.Len(t, taken, 1, "one of them")
	require.Equal(t, asked.ID, taken[0].ID)
	require.Equal(t, job.RestartPlugin, taken[0].Verb)
	require.Equal(t, "alice", taken[0].Actor)
	require.InDelta(t, time.Minute, taken[0].Within, float64(50*time.Second))

	ended := job.PluginOutcome{Result: job.CommandRefused, Reason: "no such file", Swap: json.RawMessage(`{"result":"refused"}`)}
	require.NoError(t, s.EndPluginCommand(t.Context(), asked.ID, here.ID, ended))
	require.NoError(t, s.EndPluginCommand(t.Context(), asked.ID, here.ID, job.PluginOutcome{Result: job.CommandDone}), "the first counts")
	exec(t, s, "update plugin_commands set deadline = now()")
	late, err := s.TakePluginCommands(t.Context(), there.ID)
	require.NoError(t, err)
	require.Empty(t, late)
	found, err := s.PluginCommand(t.Context(), asked.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]job.PluginResult{here.ID: job.CommandRefused, there.ID: job.CommandUnanswered}, results(found))
	require.Equal(t, "no such file", found.Outcomes[0].Reason)
	require.NotNil(t, found.Outcomes[0].EndedAt)
}

func TestACommandIsForThoseWhoHaveThePlugin(t *testing.T) {
	s := open(t)
	fleet(t, s)
	only := func(change func(*job.PluginCommand), plugin string) map[string]job.PluginResult {
		asked := command(t, plugin, job.DisablePlugin)
		change(&asked)
		stored, err := s.CommandPlugin(t.Context(), asked)
		require.NoError(t, err)
		return results(stored)
	}
	waiting := func(worker string) map[string]job.PluginResult {
		return map[string]job.PluginResult{worker: job.CommandWaiting}
	}
	require.Equal(t, waiting(here.ID), only(func(*job.PluginCommand) {}, "print"))
	require.Equal(t, waiting(there.ID), only(func(c *job.PluginCommand) { c.Worker = there.ID }, "mail"))
	require.Equal(t, waiting(there.ID), only(func(c *job.PluginCommand) { c.Host = there.Host }, "mail"))
	_, err := s.CommandPlugin(t.Context(), command(t, "nobody", job.SwapPlugin))
	require.ErrorIs(t, err, job.ErrNoPlugin)
	exec(t, s, "update workers set alive_until = now() where worker_id = $1", there.ID)
	require.Equal(t, waiting(here.ID), only(func(*job.PluginCommand) {}, "mail"), "of those that are alive")
	exec(t, s, "delete from plugin_status")
	exec(t, s, `update workers set plugins = '[{"Plugin": "mail"}]' where worker_id = $1`, here.ID)
	require.Equal(t, waiting(here.ID), only(func(*job.PluginCommand) {}, "mail"), "earlier orchestrators never answer, and are shown")
	_, err = s.PluginCommand(t.Context(), newID(t))
	require.ErrorIs(t, err, job.ErrNoCommand)
}
