package describe

import (
	"encoding/json"
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var samplePluginEvent = v1.PluginEventOf(job.PluginEvent{
	ID: sampleID, At: sampleLater, Worker: sampleWorkerID, Host: "host-1", Plugin: "builtin", Event: job.PluginRolledBack, Version: "v1.1.0",
	Digest: sampleDigest, Trigger: job.SwapByFile, Count: 1,
	Reason:  "it fails more often: 9 of 30 attempts failed (30 %); on the serving version, 0 of 270 attempts failed (0 %)",
	Details: json.RawMessage(`{"trial":{"ended":30,"failed":9,"servingEnded":270,"servingFailed":0}}`),
})

var sampleCommand = v1.PluginCommandOf(job.PluginCommand{
	ID: sampleID, Plugin: "builtin", Verb: job.RestartPlugin, Actor: "token ops", Reason: "new module", AskedAt: sampleTime,
	Deadline: sampleTime.Add(time.Minute), Outcomes: []job.PluginOutcome{
		{Worker: sampleWorkerID, Host: "host-1", Result: job.CommandDone, TakenAt: &sampleTime, EndedAt: &sampleLater},
	},
})

// allPluginOperations describe the operations on the plugins of all orchestrators, by their
// ids.
var allPluginOperations = map[string]operation{
	"list-plugin-events": {
		chapter: "Operation", summary: "See what has happened to plugins",
		description: "On all orchestrators, newest first: each swap with its reason, trials, crashes, the breaker, and what operators did. It is kept for 30 days. Of the same events in a minute, a few are kept, and the last stands for the rest.",
		answers:     with(v1.PluginEventList{Events: []v1.PluginEvent{samplePluginEvent}, NextCursor: sampleCursor}),
	},
	"list-plugins-everywhere": {
		chapter: "Operation", summary: "See the plugins of all orchestrators",
		description: "As each of them last described its plugins, which it does within 3 seconds of a change.",
		answers: with(v1.PluginsEverywhere{Orchestrators: []v1.Orchestrator{{
			WorkerID: sampleWorkerID, Host: "host-1", Condition: job.WorkerAlive, LastHeartbeat: sampleLater, DescribedAt: &sampleLater, Plugins: []v1.Plugin{samplePlugin},
		}}}),
	},
	"command-plugin": {
		chapter: "Operation", summary: "Swap, restart, disable or enable a plugin on all orchestrators",
		description: "Each orchestrator that is alive and has the plugin carries out the command at most once, and records what has become of it. The answer has the id to look for. One that starts later, or does not come to it by the deadline, does nothing.",
		takes:       v1.PluginCommandSpec{},
		requests: []request{
			{name: "restart", summary: "Restart it everywhere", media: mediaJSON, body: `{"command": "restart", "timeout": "1m", "reason": "new module"}`},
			{name: "host", summary: "Replace it on one host", media: mediaJSON, body: `{"command": "swap", "timeout": "2m"}`},
		},
		answers: []answer{{status: http.StatusAccepted, media: mediaJSON, body: sampleCommand}},
		rejections: map[int]rejection{
			http.StatusNotFound: {why: "No orchestrator that is alive has a plugin of that name", example: v1.NewProblem(http.StatusNotFound, "this orchestrator has no plugin of that name")},
			http.StatusUnsupportedMediaType: {
				why:     "The Content-Type is not one that the operation takes",
				example: v1.NewProblem(http.StatusUnsupportedMediaType, "send JSON, with the header Content-Type: application/json and no Content-Encoding"),
			},
		},
	},
	"get-plugin-command": {
		chapter: "Operation", summary: "See what has become of a command for a plugin",
		description: "At each orchestrator that it is for. Commands are kept for 30 days.",
		answers:     with(sampleCommand),
		rejections: map[int]rejection{http.StatusNotFound: {
			why: "There is no such command", example: v1.NewProblem(http.StatusNotFound, job.ErrNoCommand.Error()),
		}},
	},
}
