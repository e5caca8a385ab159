package job

import (
	"context"
	"encoding/json"
	"time"
)

// PluginEventKind says what has happened to a plugin.
type PluginEventKind string

// What can happen to a plugin of a worker.
const (
	// PluginStarted: its first process is up, since the worker started or the plugin was
	// configured or enabled.
	PluginStarted PluginEventKind = "started"
	// PluginSwapBegan: another version, or new processes of the same one, start beside those
	// that serve.
	PluginSwapBegan PluginEventKind = "swap_began"
	// PluginTrialBegan: the new version gets a share of the attempts.
	PluginTrialBegan PluginEventKind = "trial_began"
	// PluginTrialPassed and PluginTrialFailed are the verdict about it.
	PluginTrialPassed PluginEventKind = "trial_passed"
	PluginTrialFailed PluginEventKind = "trial_failed"
	// These four end a swap: see SwapResult.
	PluginPromoted   PluginEventKind = "promoted"
	PluginRolledBack PluginEventKind = "rolled_back"
	PluginRefused    PluginEventKind = "refused"
	PluginAbandoned  PluginEventKind = "abandoned"
	// PluginLaunchFailed: a process did not come up.
	PluginLaunchFailed PluginEventKind = "launch_failed"
	// PluginCrashed: a process died by itself.
	PluginCrashed PluginEventKind = "crashed"
	// PluginKilled: a process was killed, because a handler ignored its cancel.
	PluginKilled PluginEventKind = "killed"
	// PluginBroke: launches keep failing, and are tried only now and then.
	PluginBroke PluginEventKind = "broke"
	// PluginMended: a process is up again after that.
	PluginMended PluginEventKind = "mended"
	// PluginWasDisabled and PluginWasEnabled: by an operator.
	PluginWasDisabled PluginEventKind = "disabled"
	PluginWasEnabled  PluginEventKind = "enabled"
	// PluginFileSkipped: the file at its path cannot serve.
	PluginFileSkipped PluginEventKind = "file_skipped"
	// PluginEventsLost: the database was away for so long that this many events were lost.
	PluginEventsLost PluginEventKind = "events_lost"
)

// PluginEventKinds lists every kind.
func PluginEventKinds() []PluginEventKind {
	return []PluginEventKind{
		PluginStarted, PluginSwapBegan, PluginTrialBegan, PluginTrialPassed, PluginTrialFailed, PluginPromoted, PluginRolledBack, PluginRefused,
		PluginAbandoned, PluginLaunchFailed, PluginCrashed, PluginKilled, PluginBroke, PluginMended, PluginWasDisabled, PluginWasEnabled,
		PluginFileSkipped, PluginEventsLost,
	}
}

// PluginEvent is something that has happened to a plugin of a worker. The plugin host makes
// it; the ledger fills in the worker.
type PluginEvent struct {
	ID ID
	// At is by the clock of the worker until the ledger has it, and then by that of the
	// database.
	At      time.Time
	Worker  string
	Host    string
	Plugin  string
	Event   PluginEventKind
	Version string
	// Digest is the SHA-256 of the version's file.
	Digest string
	// Trigger is what started a swap; empty for other events.
	Trigger SwapTrigger
	// Actor is who asked for it; empty if nobody did, or if nobody has to log in.
	Actor  string
	Reason string
	// Count is how many events this one stands for: more than 1 if there were too many.
	Count int
	// Details is any JSON object; nil for none.
	Details json.RawMessage
}

// PluginEventFilter selects events. Zero values do not restrict.
type PluginEventFilter struct {
	Plugin, Worker string
	Event          PluginEventKind
	// Before is the position after which to go on, backwards in time.
	Before PluginEventPosition
	Limit  int
}

// PluginEventPosition is a place in the list of events, newest first. The zero value is its
// beginning.
type PluginEventPosition struct {
	At time.Time
	ID ID
}

type actorKey struct{}

// WithActor says who has asked for what is done under the context.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor returns who has asked; empty if that is not known.
func Actor(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}
