package api

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// allPluginRoutes show and operate the plugins of all orchestrators.
type allPluginRoutes struct {
	all    AllPlugins // nil for an API that knows none
	cell   job.Cell
	memory *intake.Memory
	log    *slog.Logger
}

func (p *allPluginRoutes) add(r *router) {
	add(r, "GET /debug/plugins/events", "list-plugin-events", guard.Observe, p.events, acrossTenants, mayBeStale)
	add(r, "GET /debug/plugins/everywhere", "list-plugins-everywhere", guard.Observe, p.everywhere, acrossTenants)
	add(r, "POST /debug/plugins/{name}/commands", "command-plugin", guard.Operate, p.command, acrossTenants, accepts, takesBody)
	add(r, "GET /debug/plugins/commands/{id}", "get-plugin-command", guard.Observe, p.get, acrossTenants)
}

type pluginEventsInput struct {
	call
	Plugin string     `query:"plugin" maxLength:"200" doc:"Only events of this plugin."`
	Worker string     `query:"worker" maxLength:"200" doc:"Only events of this orchestrator: its workerId."`
	Event  string     `query:"event" enum:"started,swap_began,trial_began,trial_passed,trial_failed,promoted,rolled_back,refused,abandoned,launch_failed,crashed,killed,broke,mended,disabled,enabled,file_skipped,events_lost" doc:"Only events of this kind."`
	Before timeParam  `query:"before" format:"date-time" doc:"Only events before this time (RFC 3339)."`
	Limit  limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type pluginEventsOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.PluginEventList
}

func (p *allPluginRoutes) events(ctx context.Context, in *pluginEventsInput) (*pluginEventsOutput, error) {
	out := &pluginEventsOutput{Body: v1.PluginEventList{Events: []v1.PluginEvent{}}}
	limit := in.Limit.value()
	// One more shows whether another page follows.
	filter := job.PluginEventFilter{Plugin: in.Plugin, Worker: in.Worker, Event: job.PluginEventKind(in.Event), Limit: limit + 1}
	if in.Event != "" && !slices.Contains(job.PluginEventKinds(), filter.Event) {
		return nil, invalid(at("query.event", "is not a kind of event"))
	}
	cursors := cursorsFor("plugin events", in.Plugin, in.Worker, in.Event, in.Before.UTC().String())
	after, err := cursors.openMoment(in.Cursor)
	if err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	if filter.Before = job.PluginEventPosition(after); filter.Before.At.IsZero() {
		filter.Before.At = in.Before.Time
	}
	if p.all == nil {
		return out, nil
	}
	found, err := p.all.PluginEvents(ctx, filter)
	if err != nil {
		return nil, err
	}
	if len(found) > limit {
		found = found[:limit]
		last := found[limit-1]
		out.Body.NextCursor = cursors.sealMoment(moment{last.At, last.ID})
		out.Link = in.nextPage(out.Body.NextCursor)
	}
	for _, e := range found {
		out.Body.Events = append(out.Body.Events, v1.PluginEventOf(e))
	}
	return out, nil
}

func (p *allPluginRoutes) everywhere(ctx context.Context, _ *call) (*body[v1.PluginsEverywhere], error) {
	if p.all == nil {
		return &body[v1.PluginsEverywhere]{v1.PluginsEverywhere{Orchestrators: []v1.Orchestrator{}}}, nil
	}
	found, err := p.all.PluginsEverywhere(ctx)
	return bodyOf(found, err, func(found []v1.Orchestrator) v1.PluginsEverywhere { return v1.PluginsEverywhere{Orchestrators: found} })
}

// How long orchestrators have to carry out a command.
const (
	commandWithin      = 5 * time.Minute
	leastCommandWithin = time.Second
	mostCommandWithin  = time.Hour
)

func (p *allPluginRoutes) command(ctx context.Context, in *pluginInput) (*body[v1.PluginCommand], error) {
	var sent v1.PluginCommandSpec
	mistakes, err := readMembers(&in.call, p.memory, maxRuleBytes, map[string]bodyMember{
		"command": {&sent.Command, "a text"}, "force": {&sent.Force, "true or false"}, "worker": {&sent.Worker, "a text"},
		"host": {&sent.Host, "a text"}, "timeout": {&sent.Timeout, "a duration"}, "reason": {&sent.Reason, "a text"},
	})
	if err != nil {
		return nil, err
	}
	audit.Because(ctx, sent.Reason)
	audit.Concerns(ctx, "command", sent.Command)
	within, faults := commandFaults(sent)
	if mistakes = append(mistakes, mistakesOf(faults, mistakes)...); len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	if p.all == nil {
		return nil, job.ErrNoPlugin
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	asked := job.PluginCommand{
		ID: p.cell.Stamp(job.ID(id)), Plugin: in.decoded(in.Name), Verb: job.PluginVerb(sent.Command), Force: sent.Force, Actor: guard.Name(ctx),
		Reason: sent.Reason, Worker: sent.Worker, Host: sent.Host, Within: within,
	}
	command, err := p.all.CommandPlugin(ctx, asked)
	if err == nil {
		p.log.InfoContext(ctx, "command for a plugin of all orchestrators", "plugin", asked.Plugin, "command", sent.Command,
			"command_id", asked.ID.String(), "by", asked.Actor, "orchestrators", len(command.Outcomes))
	}
	return bodyOf(command, err, v1.PluginCommandOf)
}

func commandFaults(sent v1.PluginCommandSpec) (within time.Duration, faults []job.Fault) {
	within = commandWithin
	if !slices.Contains(job.PluginVerbs(), job.PluginVerb(sent.Command)) {
		faults = append(faults, job.Fault{Member: "command", Reason: "must be swap, restart, disable or enable"})
	}
	if sent.Timeout != "" {
		var err error
		if within, err = time.ParseDuration(sent.Timeout); err != nil || within < leastCommandWithin || within > mostCommandWithin {
			faults = append(faults, job.Fault{
				Member: "timeout", Reason: fmt.Sprintf("must be a duration from %s to %s, such as 5m", leastCommandWithin, mostCommandWithin),
			})
		}
	}
	return within, append(faults, faultsOfReason(sent.Reason)...)
}

type commandInput struct {
	call
	ID job.ID `path:"id" format:"uuid" doc:"The command's id."`
}

func (p *allPluginRoutes) get(ctx context.Context, in *commandInput) (*body[v1.PluginCommand], error) {
	if p.all == nil {
		return nil, job.ErrNoCommand
	}
	command, err := p.all.PluginCommand(ctx, in.ID)
	return bodyOf(command, err, v1.PluginCommandOf)
}
