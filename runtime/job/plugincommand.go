package job

import (
	"encoding/json"
	"errors"
	"time"
)

// ErrNoCommand means that there is no command with that id.
var ErrNoCommand = errors.New("no such command")

// PluginVerb is what a command asks of a plugin.
type PluginVerb string

// The verbs.
const (
	SwapPlugin    PluginVerb = "swap"
	RestartPlugin PluginVerb = "restart"
	DisablePlugin PluginVerb = "disable"
	EnablePlugin  PluginVerb = "enable"
)

// PluginVerbs lists every verb.
func PluginVerbs() []PluginVerb {
	return []PluginVerb{SwapPlugin, RestartPlugin, DisablePlugin, EnablePlugin}
}

// PluginCommand asks something of a plugin of many workers. Each carries it out at most once.
type PluginCommand struct {
	ID     ID
	Plugin string
	Verb   PluginVerb
	// Force is for SwapPlugin and EnablePlugin.
	Force  bool
	Actor  string
	Reason string
	// Worker and Host restrict whom it is for; empty for all that have the plugin.
	Worker string
	Host   string
	// Within is how long there is to carry it out.
	Within time.Duration
	// The ledger fills in these.
	AskedAt  time.Time
	Deadline time.Time
	Outcomes []PluginOutcome
}

// PluginResult is what has become of a command at a worker.
type PluginResult string

// The results.
const (
	// CommandWaiting: the worker has not taken it on.
	CommandWaiting PluginResult = "waiting"
	// CommandRunning: it has.
	CommandRunning PluginResult = "running"
	// CommandDone: it did what was asked.
	CommandDone PluginResult = "done"
	// CommandRefused: it could not be done, and nothing has changed.
	CommandRefused PluginResult = "refused"
	// CommandFailed: it was tried, and the version that served still serves.
	CommandFailed PluginResult = "failed"
	// CommandUnanswered: the deadline has passed without an answer.
	CommandUnanswered PluginResult = "unanswered"
)

// PluginOutcome is what has become of a command at one worker.
type PluginOutcome struct {
	Worker  string
	Host    string
	Result  PluginResult
	Reason  string
	TakenAt *time.Time
	EndedAt *time.Time
	// Swap is the swap that came of it, as JSON; nil for none.
	Swap json.RawMessage
}

// TakenCommand is a command that a worker has taken on.
type TakenCommand struct {
	ID     ID
	Plugin string
	Verb   PluginVerb
	Force  bool
	Actor  string
	Within time.Duration
}
