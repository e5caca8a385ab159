package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// PluginEvent is something that has happened to a plugin of an orchestrator.
type PluginEvent struct {
	EventID job.ID              `json:"eventId" format:"uuid"`
	At      time.Time           `json:"at"`
	Worker  string              `json:"worker" doc:"The orchestrator: its workerId."`
	Host    string              `json:"host"`
	Plugin  string              `json:"plugin" doc:"Empty for events_lost."`
	Event   job.PluginEventKind `json:"event" enum:"started,swap_began,trial_began,trial_passed,trial_failed,promoted,rolled_back,refused,abandoned,launch_failed,crashed,killed,broke,mended,disabled,enabled,file_skipped,events_lost" doc:"What happened. promoted, rolled_back, refused and abandoned end a swap."`
	PluginVersion
	Trigger job.SwapTrigger `json:"trigger,omitempty" enum:"file,config,request,restart,failure" doc:"What started the swap. Absent for other events."`
	Actor   string          `json:"actor,omitempty" doc:"Who asked for it. Absent if nobody did, or if the API asks for no credentials."`
	Reason  string          `json:"reason,omitempty" doc:"Why it happened. What processes print is left out: it is in the log."`
	Count   int             `json:"count" doc:"How many events this one stands for. Above 1, there were too many in a minute to keep each, and this is the last of them."`
	Details json.RawMessage `json:"details,omitempty" doc:"The swap, if the event begins or ends one; the comparison with the serving version, for the verdict of a trial; the breaker, for broke. Any JSON object."`
}

// PluginEventList is a page of events.
type PluginEventList struct {
	Events     []PluginEvent `json:"events" nullable:"false" doc:"Newest first."`
	NextCursor string        `json:"nextCursor,omitempty" doc:"Absent on the last page."`
}

// PluginEventOf returns the event for operators.
func PluginEventOf(e job.PluginEvent) PluginEvent {
	return PluginEvent{
		EventID: e.ID, At: e.At.UTC(), Worker: e.Worker, Host: e.Host, Plugin: e.Plugin, Event: e.Event,
		PluginVersion: PluginVersion{Version: e.Version, SHA256: e.Digest}, Trigger: e.Trigger, Actor: e.Actor, Reason: e.Reason,
		Count: e.Count, Details: e.Details,
	}
}
