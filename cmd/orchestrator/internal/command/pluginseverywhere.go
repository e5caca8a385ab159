package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// commandPoll is how often to look at what has become of a command.
const commandPoll = 500 * time.Millisecond

// everywhereFlag makes a command act on all orchestrators.
func everywhereFlag(c *cobra.Command, everywhere *bool) {
	c.Flags().BoolVar(everywhere, "everywhere", false, "on all orchestrators with the plugin, not only the one asked")
}

// showPluginsEverywhere shows the plugins by worker. A worker that is silent may have others by now.
func (s *session) showPluginsEverywhere(found v1.PluginsEverywhere) error {
	table := show.NewTable(s.out, append([]string{"WORKER"}, pluginColumns()...)...)
	for _, o := range found.Orchestrators {
		for _, plugin := range o.Plugins {
			table.Row(append([]any{o.WorkerID}, s.pluginRow(plugin)...)...)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, o := range found.Orchestrators {
		if o.Condition == job.WorkerSilent && len(o.Plugins) > 0 {
			s.notes.Print(show.Clean(fmt.Sprintf("%s is silent: this is what it said before, and its last heartbeat was %s.", o.WorkerID, s.ago(o.LastHeartbeat))) + "\n")
		}
		for _, plugin := range o.Plugins {
			s.remark(o.WorkerID+", "+plugin.Name, plugin)
		}
	}
	return nil
}

// commandPlugins sends a command to all orchestrators with the plugin, and waits until each
// has answered or its time is over.
func (s *session) commandPlugins(ctx context.Context, name, action string, force bool) error {
	body, err := json.Marshal(v1.PluginCommandSpec{Command: action, Force: force})
	if err != nil {
		return err
	}
	answer, err := s.Post(ctx, apiclient.Path(pluginsPath, name, "commands"), nil, body)
	if err != nil {
		return err
	}
	var command v1.PluginCommand
	if err := answer.Into(&command); err != nil {
		return err
	}
	for told := false; !command.Ended; told = true {
		if told {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(commandPoll):
			}
		}
		if answer, err = s.Get(ctx, apiclient.Path(pluginsPath, "commands", command.CommandID.String()), nil); err != nil {
			return err
		}
		if err := answer.Into(&command); err != nil {
			return err
		}
	}
	if err := present(s, answer, (*session).showCommand); err != nil {
		return err
	}
	for _, o := range command.Outcomes {
		if o.Result != job.CommandDone {
			return Exit{CodeFound}
		}
	}
	return nil
}

func (s *session) showCommand(command v1.PluginCommand) error {
	table := show.NewTable(s.out, "HOST", "WORKER", "RESULT", "TOOK", "REASON").CutLast()
	for _, o := range command.Outcomes {
		result, took := show.Cell{Text: string(o.Result), Style: show.Bad}, ""
		if o.Result == job.CommandDone {
			result.Style = show.Good
		}
		if o.TakenAt != nil && o.EndedAt != nil {
			took = show.Age(o.EndedAt.Sub(*o.TakenAt))
		}
		table.Row(o.Host, o.Worker, result, show.Right(took), o.Reason)
	}
	return table.Flush()
}
