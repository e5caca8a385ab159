package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Orchestrator is an orchestrator with its plugins.
type Orchestrator struct {
	WorkerID      string        `json:"workerId"`
	Host          string        `json:"host"`
	Condition     job.Condition `json:"condition" enum:"alive,draining,drained,silent" doc:"As in the list of workers. What a silent one says of its plugins may be old."`
	LastHeartbeat time.Time     `json:"lastHeartbeat"`
	DescribedAt   *time.Time    `json:"describedAt,omitempty" doc:"When it last said something new of its plugins. Absent if it never did: it is older than this."`
	Plugins       []Plugin      `json:"plugins" nullable:"false" doc:"In the order of its configuration, without what processes have printed."`
}

// PluginsEverywhere is the plugins of all orchestrators.
type PluginsEverywhere struct {
	Orchestrators []Orchestrator `json:"orchestrators" nullable:"false" doc:"Those that have not stopped, by host and id."`
}

// PluginCommandSpec asks something of a plugin of many orchestrators.
type PluginCommandSpec struct {
	Command string `json:"command" enum:"swap,restart,disable,enable" doc:"What each of them does."`
	Force   bool   `json:"force,omitempty" doc:"As for swap-plugin and enable-plugin."`
	Worker  string `json:"worker,omitempty" maxLength:"200" doc:"Only the orchestrator with this workerId."`
	Host    string `json:"host,omitempty" maxLength:"200" doc:"Only orchestrators on this host."`
	Timeout string `json:"timeout,omitempty" example:"5m" doc:"How long they have, from 1s to 1h. The default is 5m."`
	Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"Why, for others."`
}

// PluginCommand is something that was asked of a plugin of many orchestrators.
type PluginCommand struct {
	CommandID job.ID          `json:"commandId" format:"uuid"`
	Plugin    string          `json:"plugin"`
	Command   job.PluginVerb  `json:"command" enum:"swap,restart,disable,enable"`
	Force     bool            `json:"force"`
	Actor     string          `json:"actor,omitempty" doc:"Who asked. Absent if the API asks for no credentials."`
	Reason    string          `json:"reason,omitempty"`
	AskedAt   time.Time       `json:"askedAt"`
	Deadline  time.Time       `json:"deadline"`
	Ended     bool            `json:"ended" doc:"Whether no outcome is waiting or running."`
	Outcomes  []PluginOutcome `json:"outcomes" nullable:"false" doc:"One for each orchestrator that it is for, by host and id. One that starts later does nothing."`
}

// PluginOutcome is what has become of a command at one orchestrator.
type PluginOutcome struct {
	Worker  string           `json:"worker"`
	Host    string           `json:"host"`
	Result  job.PluginResult `json:"result" enum:"waiting,running,done,refused,failed,unanswered" doc:"refused: nothing was done. failed: it was tried, and what served still serves. unanswered: there was no answer by the deadline."`
	Reason  string           `json:"reason,omitempty"`
	TakenAt *time.Time       `json:"takenAt,omitempty" doc:"When it took the command on, which it does once. Absent if it has not."`
	EndedAt *time.Time       `json:"endedAt,omitempty"`
	Swap    json.RawMessage  `json:"swap,omitempty" doc:"The swap that came of it. Any JSON object."`
}

// PluginCommandOf returns the command for operators.
func PluginCommandOf(c job.PluginCommand) PluginCommand {
	shown := PluginCommand{
		CommandID: c.ID, Plugin: c.Plugin, Command: c.Verb, Force: c.Force, Actor: c.Actor, Reason: c.Reason, AskedAt: c.AskedAt,
		Deadline: c.Deadline, Ended: true, Outcomes: []PluginOutcome{},
	}
	for _, o := range c.Outcomes {
		if o.Result == job.CommandWaiting || o.Result == job.CommandRunning {
			shown.Ended = false
		}
		shown.Outcomes = append(shown.Outcomes, PluginOutcome(o))
	}
	return shown
}
