package host

import (
	"encoding/json"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// record passes on what has happened to the plugin, with details that become JSON; nil for
// none. The fleet may be locked.
func (f *fleet) record(e job.PluginEvent, details any) {
	if f.settings.Happened == nil {
		return
	}
	if details != nil {
		e.Details, _ = json.Marshal(details)
	}
	e.At, e.Plugin, e.Count = time.Now(), f.name, 1
	f.settings.Happened(e)
}

// happened records an event of the generation, and why; nil for no reason.
func (g *generation) happened(kind job.PluginEventKind, why error) {
	reason := ""
	if why != nil {
		reason = connection.WithoutOutput(why)
	}
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	g.happenedLocked(job.PluginEvent{Event: kind, Reason: reason}, nil)
}

// happenedLocked records an event of the generation. The fleet is locked.
func (g *generation) happenedLocked(e job.PluginEvent, details any) {
	v := g.version()
	e.Version, e.Digest = v.Version, v.SHA256
	g.fleet.record(e, details)
}

// recordVerdict records how a trial has ended.
func (c *conductor) recordVerdict(g *generation, failed error) {
	e := job.PluginEvent{Event: job.PluginTrialPassed}
	if failed != nil {
		e.Event, e.Reason = job.PluginTrialFailed, connection.WithoutOutput(failed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g.happenedLocked(e, c.compareLocked(g, false).summary())
}

// recordSwap records the end of a swap. The fleet is locked.
func (c *conductor) recordSwap(p plan, s v1.PluginSwap, plainReason string) {
	s.Reason = plainReason
	c.record(job.PluginEvent{
		Event: job.PluginEventKind(s.Result), Version: s.To.Version, Digest: s.To.SHA256,
		Trigger: p.trigger, Actor: p.actor, Reason: plainReason,
	}, s)
}
