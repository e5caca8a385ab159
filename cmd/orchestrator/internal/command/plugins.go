package command

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) pluginsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "plugins",
		Aliases: []string{"handlers"},
		Short:   "Manage the plugins of an orchestrator, or write new ones",
		Long: `Manage the plugins of one orchestrator, not of others on the same database. See what
has happened to those of all orchestrators. Or write, run and check new plugins,
without an orchestrator.`,
	}
	c.AddCommand(
		p.pluginsListCommand(), p.pluginsSwapCommand(),
		p.pluginsActCommand("restart", "Replace the processes with new ones of the same version",
			`Replace the processes with new ones of the same version. The new ones start before
the old ones finish their jobs. If the new ones fail to start, the old ones stay
and the exit code is 3.`),
		p.pluginsActCommand("disable", "Stop a plugin when it has finished its jobs",
			`Stop a plugin when it has finished its jobs. Further jobs stay queued until you
enable it, or until the orchestrator starts again.`),
		p.pluginsEnableCommand(), p.pluginsHistoryCommand())
	return c
}

const pluginsPath = "/debug/plugins"

func (p *Program) pluginsListCommand() *cobra.Command {
	everywhere := false
	c := &cobra.Command{
		Use:   "list",
		Short: "List the plugins, their versions and their last swaps",
		Args:  NoArguments,
	}
	c.Flags().BoolVar(&everywhere, "everywhere", false, "those of all orchestrators, not only of the one asked")
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		if everywhere {
			return presents(pluginsPath+"/everywhere", (*session).showPluginsEverywhere)(ctx, s, args)
		}
		return presents(pluginsPath, (*session).showPluginsHere)(ctx, s, args)
	})
}

func (p *Program) pluginsSwapCommand() *cobra.Command {
	force, everywhere := false, false
	c := &cobra.Command{
		Use:   "swap NAME",
		Short: "Replace a plugin with what its file is now",
		Long: `Replace a plugin with what its file is now, as happens by itself when the file
changes. The new version starts beside the old one and runs as a canary; then it
serves, or is rolled back. The exit code is 3 if it does not serve.`,
		Args: oneArgument,
	}
	c.Flags().BoolVar(&force, "force", false, "replace it even if the new version cannot run some waiting jobs")
	everywhereFlag(c, &everywhere)
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		if everywhere {
			return s.commandPlugins(ctx, args[0], "swap", force)
		}
		return s.swapPlugin(ctx, args[0], "swap", forced(force))
	})
}

func (p *Program) pluginsActCommand(action, short, long string) *cobra.Command {
	everywhere := false
	c := &cobra.Command{Use: action + " NAME", Short: short, Long: long, Args: oneArgument}
	everywhereFlag(c, &everywhere)
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		if everywhere {
			return s.commandPlugins(ctx, args[0], action, false)
		}
		if action == "restart" {
			return s.swapPlugin(ctx, args[0], action, nil)
		}
		return s.operatePlugin(ctx, args[0], action, nil)
	})
}

func (p *Program) pluginsEnableCommand() *cobra.Command {
	force, everywhere := false, false
	c := &cobra.Command{
		Use:   "enable NAME",
		Short: "Start a disabled plugin",
		Long: `Start a disabled plugin with what its file is now. If that was rolled back or
rejected, it starts the version that served before.`,
		Args: oneArgument,
	}
	c.Flags().BoolVar(&force, "force", false, "use the file as it is, even if it was rolled back or rejected")
	everywhereFlag(c, &everywhere)
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		if everywhere {
			return s.commandPlugins(ctx, args[0], "enable", force)
		}
		return s.operatePlugin(ctx, args[0], "enable", forced(force))
	})
}

// forced returns the query parameter for --force.
func forced(force bool) url.Values {
	if !force {
		return nil
	}
	return url.Values{"force": {"true"}}
}

// operatePlugin performs an action that the API answers with the plugin.
func (s *session) operatePlugin(ctx context.Context, name, action string, query url.Values) error {
	answer, err := s.Post(ctx, apiclient.Path(pluginsPath, name, action), query, nil)
	if err != nil {
		return err
	}
	return present(s, answer, func(s *session, plugin v1.Plugin) error { return s.showPlugins([]v1.Plugin{plugin}) })
}

func (s *session) showPluginsHere(found v1.PluginList) error {
	if len(found.Plugins) == 0 {
		s.notes.Print("This orchestrator has no plugins: --everywhere shows those of all.\n")
	}
	return s.showPlugins(found.Plugins)
}

func (s *session) showPlugins(plugins []v1.Plugin) error {
	table := show.NewTable(s.out, pluginColumns()...)
	for _, plugin := range plugins {
		table.Row(s.pluginRow(plugin)...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, plugin := range plugins {
		s.remark(plugin.Name, plugin)
	}
	return nil
}

func pluginColumns() []string {
	return []string{"PLUGIN", "STATE", "VERSION", "PROCESSES", "RUNNING", "FREE", "MEMORY", "CPUS", "CRASHES", "LAST SWAP"}
}

func (s *session) pluginRow(plugin v1.Plugin) []any {
	memory, cpus := useOf(plugin.Use)
	return []any{
		plugin.Name, styled(plugin.State), versionText(plugin.PluginVersion),
		show.Right(fmt.Sprintf("%d/%d", len(plugin.PIDs), plugin.Processes)),
		plugin.Running + plugin.Isolated + plugin.Draining, plugin.Free, memory, cpus, alarming(int64(plugin.Crashes)), s.lastSwapCell(plugin),
	}
}

// useOf is what the processes use together; empty if none was measured.
func useOf(uses []v1.PluginUse) (memory, cpus show.Cell) {
	if len(uses) == 0 {
		return memory, cpus
	}
	bytes, processors := int64(0), 0.
	for _, use := range uses {
		bytes, processors = bytes+use.Memory, processors+use.CPUs
	}
	return show.Right(show.Bytes(bytes)), show.Right(fmt.Sprintf("%.2f", processors))
}

// remark prints what has no place in the table, after the name by which the plugin is shown.
func (s *session) remark(name string, plugin v1.Plugin) {
	say := func(format string, values ...any) {
		s.notes.Print(show.Clean(name+": "+fmt.Sprintf(format, values...)) + "\n")
	}
	if c := plugin.Candidate; c != nil {
		say("%s is the candidate (%s): %s", versionText(c.PluginVersion), c.State, trialText(c.PluginTrial))
	}
	if swap := plugin.LastSwap; swap != nil && swap.Reason != "" {
		to := versionText(swap.To)
		if to == "" { // there was no file to read a version from
			to = "the candidate"
		}
		promoted, serves := swap.Result == job.SwapPromoted, swap.To.SHA256 == plugin.SHA256
		switch {
		case promoted && serves && plugin.State != job.PluginDisabled: // the reason is why its predecessor does not
			say("%s serves again: %s", to, swap.Reason)
		case promoted: // another one was enabled since, or none serves
		case serves: // it replaced itself, or was enabled since
			say("%s did not take over: %s", to, swap.Reason)
		default:
			say("%s does not serve: %s", to, swap.Reason)
		}
	}
	if len(plugin.SkippedJobTypes) > 0 {
		say("it declares job types that the configuration assigns to others: %s", strings.Join(plugin.SkippedJobTypes, ", "))
	}
	if plugin.SkipReason != "" {
		say("its file is skipped: %s", plugin.SkipReason)
	}
	if plugin.LastError != "" && plugin.State != job.PluginUp {
		say("%s", plugin.LastError)
	}
}

// trialText describes the canary of a version.
func trialText(t v1.PluginTrial) string {
	text := fmt.Sprintf("%d attempts ended in the canary, %d of them failed", t.Ended, t.Failed)
	if p := t.Slowest; p != nil {
		text += fmt.Sprintf("; median of %s: %s, of the serving version: %s", p.JobType, exact(p.MedianSeconds), exact(p.ServingMedianSeconds))
	}
	return text
}

func (s *session) lastSwapCell(plugin v1.Plugin) show.Cell {
	switch {
	case plugin.LastSwap == nil:
		return show.Cell{}
	case plugin.LastSwap.EndedAt == nil:
		return show.Cell{Text: "in progress"}
	}
	cell := resultCell(plugin.LastSwap.Result)
	cell.Text += " " + s.ago(*plugin.LastSwap.EndedAt)
	return cell
}

func resultCell(result job.SwapResult) show.Cell {
	cell := show.Cell{Text: strings.ReplaceAll(string(result), "_", " "), Style: show.Bad}
	if result == job.SwapPromoted {
		cell.Style = show.Good
	}
	return cell
}

// versionText is a version with the beginning of its digest.
func versionText(v v1.PluginVersion) string {
	short := v.SHA256[:min(len(v.SHA256), 8)]
	if v.Version == "" {
		return short
	}
	return v.Version + " (" + short + ")"
}
