// Package fleet tests that operators see and steer the plugins of all orchestrators from any
// of them: real orchestrators and plugins, one of which is killed meanwhile.
package fleet

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const glance = 20 * time.Millisecond

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "2") // the tests mostly wait
	var err error
	if bin, err = rigtest.Build("../../bin/fleet", "../../cmd/orchestrator", "../../cmd/handlers"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// member is an orchestrator with a copy of the built-in plugin.
type member struct {
	*rig.Orchestrator
	// file is the plugin's.
	file string
	id   string
}

func newFleet(t *testing.T, url string, members int) (fleet []*member) {
	t.Helper()
	for i := range members {
		m := &member{file: filepath.Join(t.TempDir(), "handlers"), id: fmt.Sprint(i)}
		m.install(t, "")
		m.Orchestrator = rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(),
			"database.url="+url, "worker.id="+m.id, "worker.lease=10s", "worker.kill_grace=1s", "log.format=json", "plugins.0.name=builtin", "plugins.0.path="+m.file,
			"plugins.0.canary.period=200ms")
		rigtest.Start(t, m.Orchestrator)
		fleet = append(fleet, m)
	}
	require.Eventually(t, func() bool { return len(fleet[0].everywhere(t)) == members }, rigtest.Patience, glance, "all have described their plugins")
	return fleet
}

// install replaces the plugin's file by the built-in one with something after its end, or by
// a script.
func (m *member) install(t *testing.T, script string) {
	t.Helper()
	text := []byte(script)
	if script == "" {
		var err error
		text, err = os.ReadFile(filepath.Join(bin, "handlers"))
		require.NoError(t, err)
		text = append(text, m.id...)
	}
	require.NoError(t, os.WriteFile(m.file+".new", text, 0o755))
	require.NoError(t, os.Rename(m.file+".new", m.file))
}

// everywhere returns the plugin at each live orchestrator that has described it, by the name
// of the worker.
func (m *member) everywhere(t *testing.T) map[string]v1.Plugin {
	t.Helper()
	var found v1.PluginsEverywhere
	require.NoError(t, m.Call(t.Context(), http.MethodGet, "/debug/plugins/everywhere", nil, http.StatusOK, &found))
	plugins := make(map[string]v1.Plugin)
	for _, o := range found.Orchestrators {
		if o.Condition == job.WorkerAlive && len(o.Plugins) == 1 {
			plugins[o.WorkerID[:1]] = o.Plugins[0]
		}
	}
	return plugins
}

// command asks all orchestrators, and returns the results by the name of the worker.
func (m *member) command(t *testing.T, spec v1.PluginCommandSpec, during func()) map[string]v1.PluginOutcome {
	t.Helper()
	var command v1.PluginCommand
	require.NoError(t, m.Call(t.Context(), http.MethodPost, "/debug/plugins/builtin/commands", spec, http.StatusAccepted, &command))
	during()
	require.Eventually(t, func() bool {
		err := m.Call(t.Context(), http.MethodGet, "/debug/plugins/commands/"+command.CommandID.String(), nil, http.StatusOK, &command)
		return err == nil && command.Ended
	}, rigtest.Patience, glance)
	outcomes := make(map[string]v1.PluginOutcome)
	for _, o := range command.Outcomes {
		outcomes[o.Worker[:1]] = o
	}
	return outcomes
}

func TestACommandReachesEveryOrchestratorButOneThatIsKilled(t *testing.T) {
	t.Parallel()
	fleet := newFleet(t, pgtest.URL(t), 3)
	before := fleet[0].everywhere(t)
	require.NoError(t, os.Remove(fleet[1].file))
	outcomes := fleet[0].command(t, v1.PluginCommandSpec{Command: "swap", Timeout: "1m"}, func() {})
	require.Equal(t, job.CommandDone, outcomes["0"].Result, outcomes)
	require.Equal(t, job.CommandRefused, outcomes["1"].Result)
	require.Contains(t, outcomes["1"].Reason, "no such file")
	require.Equal(t, job.CommandDone, outcomes["2"].Result)

	// A stopped process is alive until its lease ends, and answers nothing.
	require.NoError(t, fleet[2].Signal(syscall.SIGSTOP))
	outcomes = fleet[1].command(t, v1.PluginCommandSpec{Command: "restart", Timeout: "20s", Reason: "test"}, func() {
		require.NoError(t, fleet[2].Kill())
	})
	require.Equal(t, job.CommandDone, outcomes["0"].Result, outcomes)
	require.Equal(t, job.CommandDone, outcomes["1"].Result, "what runs needs no file")
	require.Equal(t, job.CommandUnanswered, outcomes["2"].Result)
	rigtest.Start(t, fleet[2].Orchestrator)
	require.Eventually(t, func() bool { return len(fleet[0].everywhere(t)) == 3 }, rigtest.Patience, glance)
	after := fleet[0].everywhere(t)
	require.NotEqual(t, before["0"].PIDs, after["0"].PIDs)
	require.Nil(t, after["2"].LastSwap, "the new incarnation repeats nothing")

	outcomes = fleet[2].command(t, v1.PluginCommandSpec{Command: "disable", Timeout: "1m"}, func() {})
	require.Len(t, outcomes, 3)
	require.Eventually(t, func() bool {
		for _, p := range fleet[1].everywhere(t) {
			if p.State != job.PluginDisabled {
				return false
			}
		}
		return true
	}, rigtest.Patience, glance)
	var events v1.PluginEventList
	require.Eventually(t, func() bool {
		err := fleet[1].Call(t.Context(), http.MethodGet, "/debug/plugins/events?plugin=builtin&event=disabled", nil, http.StatusOK, &events)
		return err == nil && len(events.Events) == 3
	}, rigtest.Patience, glance)
	require.Equal(t, "admin", events.Events[0].Actor)
}

// A bad binary on one orchestrator is seen on another within three seconds.
func TestARollbackIsSeenElsewhere(t *testing.T) {
	t.Parallel()
	fleet := newFleet(t, pgtest.URL(t), 2)
	fleet[0].install(t, "#!/bin/sh\necho s3cret\nexit 3\n")
	var swap v1.PluginSwap
	require.NoError(t, fleet[0].Call(t.Context(), http.MethodPost, "/debug/plugins/builtin/swap", nil, http.StatusOK, &swap))
	ended := time.Now()
	require.Equal(t, job.SwapRolledBack, swap.Result)
	require.Contains(t, swap.Reason, "s3cret", "the orchestrator that is asked shows what was printed")
	require.Eventually(t, func() bool {
		last := fleet[1].everywhere(t)["0"].LastSwap
		return last != nil && last.Result == job.SwapRolledBack
	}, rigtest.Patience, glance)
	t.Logf("seen on another orchestrator after %s", time.Since(ended))
	require.Less(t, time.Since(ended), time.Minute, "usually within 2 s; the machine may be busy")
	last := fleet[1].everywhere(t)["0"].LastSwap
	require.Equal(t, "it ended during its start: exit status 3", last.Reason)
	var events v1.PluginEventList
	require.Eventually(t, func() bool {
		err := fleet[1].Call(t.Context(), http.MethodGet, "/debug/plugins/events?event=rolled_back", nil, http.StatusOK, &events)
		return err == nil && len(events.Events) == 1
	}, rigtest.Patience, glance)
	require.Equal(t, last.Reason, events.Events[0].Reason)
	require.Equal(t, "admin", events.Events[0].Actor)
}
