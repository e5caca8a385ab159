package ui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func someEverywhere() map[string]any {
	id, _ := job.ParseID("019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa")
	ended, next := noon.Add(-3*time.Second), noon.Add(20*time.Second)
	serving, bad := v1.PluginVersion{Version: "1.0", SHA256: strings.Repeat("a", 64)}, v1.PluginVersion{Version: "<b>2", SHA256: strings.Repeat("b", 64)}
	figures := v1.PluginTrial{Ended: 30, Failed: 9, ServingEnded: 270, Slowest: &v1.PluginPace{JobType: "MAIL", MedianSeconds: 2, ServingMedianSeconds: .1}}
	command := v1.PluginCommand{
		CommandID: id, Plugin: "shop/mail", Command: job.RestartPlugin, Actor: "alice", AskedAt: noon, Deadline: noon.Add(time.Minute),
		Outcomes: []v1.PluginOutcome{{Worker: "one/1", Host: "jobs-1", Result: job.CommandDone}, {Worker: "two/2", Host: "jobs-2", Result: job.CommandRunning}},
	}
	return map[string]any{
		"GET /debug/plugins/everywhere": v1.PluginsEverywhere{Orchestrators: []v1.Orchestrator{
			{WorkerID: "one/1", Host: "jobs-1", Condition: job.WorkerAlive, Plugins: []v1.Plugin{{
				PluginVersion: serving, Name: "shop/mail", Path: "/opt/mail", State: job.PluginUp, JobTypes: []string{"MAIL"}, PIDs: []int{7, 8}, Processes: 2,
				Running: 3, Free: 17, Crashes: 1, Restarts: 2, Limits: []v1.Enforcement{{Limit: "memory", Value: 256 << 20, By: "cgroup"}, {Limit: "cpus", Value: .5, By: "affinity", Gap: "idle"}},
				Use:       []v1.PluginUse{{PID: 7, Memory: 64 << 20, CPUs: .02, Processes: 9}, {PID: 8, Memory: 128 << 20, CPUs: .5, Processes: 11}},
				Candidate: &v1.PluginCandidate{PluginVersion: bad, State: job.CandidateCanary, PIDs: []int{9}, PluginTrial: figures},
			}}},
			{WorkerID: "two/2", Host: "jobs-2", Condition: job.WorkerSilent, Plugins: []v1.Plugin{
				{
					PluginVersion: serving, Name: "shop/mail", State: job.PluginBroken, Breaker: &v1.PluginBreaker{Failures: 5, Open: true, NextLaunchAt: &next},
					LastError: "exit status 3", LastSwap: &v1.PluginSwap{
						Trigger: job.SwapByFile, From: serving, To: bad, BegunAt: noon.Add(-9 * time.Second), EndedAt: &ended, Result: job.SwapRolledBack,
						Trial: &figures, Reason: "it fails more often",
					},
				},
				{Name: "idle", State: job.PluginDisabled, SkipReason: "it was rolled back"},
			}},
		}},
		"GET /debug/plugins/events": v1.PluginEventList{NextCursor: "more", Events: []v1.PluginEvent{
			{EventID: id, At: ended, Worker: "two/2", Host: "jobs-2", Plugin: "shop/mail", Event: job.PluginRolledBack, PluginVersion: bad, Trigger: job.SwapByFile, Count: 1, Reason: "it fails <more> often"},
			{At: ended, Worker: "one/1", Host: "jobs-1", Plugin: "shop/mail", Event: job.PluginCrashed, PluginVersion: serving, Actor: "", Count: 37},
		}},
		"GET /debug/plugins/commands/" + id.String(): command,
		"POST /debug/plugins/shop%2Fmail/commands":   command,
	}
}

func TestPluginsAreShownByOrchestrator(t *testing.T) {
	requireGolden(t, "plugins", newPages(someEverywhere()).get("/ui/plugins"))
	requireGolden(t, "plugins-empty", newPages(map[string]any{"GET /debug/plugins/everywhere": v1.PluginsEverywhere{}}).get("/ui/plugins"))
}

func TestAPluginIsShownWithItsHistory(t *testing.T) {
	requireGolden(t, "plugin", newPages(someEverywhere()).get("/ui/plugins/shop%2Fmail?command=019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa"))
	requireGolden(t, "plugin-force", newPages(someEverywhere()).get("/ui/plugins/shop%2Fmail/force?worker=one%2F1"))
	requireNothingToDo(t, newPagesFor(observers, someEverywhere()).get("/ui/plugins/shop%2Fmail", "Authorization: Bearer observer"))
	requireNothingToDo(t, newPagesFor(observers, someEverywhere()).get("/ui/plugins/shop%2Fmail/force", "Authorization: Bearer observer"))
	answers := someEverywhere()
	answers["GET /debug/plugins/events"] = v1.PluginEventList{}
	require.Equal(t, 404, newPages(answers).get("/ui/plugins/nobody").Code)
}

func TestCommandsGoToAllOrchestratorsOrOne(t *testing.T) {
	p := newPages(someEverywhere())
	w := p.post("/ui/plugins/shop%2Fmail/restart")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/plugins/shop%2Fmail?command=019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa", w.Header().Get("Location"))
	require.Equal(t, 303, p.post("/ui/plugins/shop%2Fmail/disable", "worker", "one/1").Code)
	require.Equal(t, 303, p.post("/ui/plugins/shop%2Fmail/swap", "force", "on").Code)
	require.Equal(t, []string{
		`POST /debug/plugins/shop%2Fmail/commands {"command":"restart"}`,
		`POST /debug/plugins/shop%2Fmail/commands {"command":"disable","worker":"one/1"}`,
		`POST /debug/plugins/shop%2Fmail/commands {"command":"swap","force":true}`,
	}, p.api.sent)
	require.Equal(t, http.StatusNotFound, p.post("/ui/plugins/nobody/restart").Code)
}
