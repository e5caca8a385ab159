package command

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var historyFilters = filters{
	{"worker", "worker", "only events of the orchestrator with this `id`"},
	{"event", "event", "only events of this `kind`, such as rolled_back"},
	{"before", "before", "only events before this `time` (RFC 3339)"},
}

func (p *Program) pluginsHistoryCommand() *cobra.Command {
	pages := pageFlags{}
	c := &cobra.Command{
		Use:   "history [NAME]",
		Short: "List what has happened to plugins, on all orchestrators",
		Long: `List what has happened to plugins, on all orchestrators, newest first: swaps and
their reasons, trials, crashes, the breaker, and what operators did. It is kept for
30 days. TIMES is above 1 if there were too many events in a minute to keep each.`,
		Args:    atMost(1),
		PreRunE: pages.check,
	}
	historyFilters.register(c)
	pages.register(c)
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		query := historyFilters.query(c)
		if len(args) > 0 {
			query.Set("plugin", args[0])
		}
		table := show.NewTable(s.out, "WHEN", "PLUGIN", "WORKER", "EVENT", "VERSION", "TIMES", "BY", "REASON").CutLast()
		return list(ctx, s, pluginsPath+"/events", "events", query, pages, table, func(e v1.PluginEvent) {
			table.Row(s.ago(e.At), e.Plugin, e.Worker, eventCell(e.Event), versionText(e.PluginVersion), show.Right(strconv.Itoa(e.Count)),
				byText(e), e.Reason)
		})
	})
}

// byText is who or what has started something.
func byText(e v1.PluginEvent) string {
	switch {
	case e.Actor != "":
		return e.Actor
	case e.Trigger != "":
		return "(" + string(e.Trigger) + ")"
	}
	return ""
}

func eventCell(kind job.PluginEventKind) show.Cell {
	cell := show.Cell{Text: strings.ReplaceAll(string(kind), "_", " ")}
	switch kind {
	case job.PluginPromoted, job.PluginTrialPassed, job.PluginMended:
		cell.Style = show.Good
	case job.PluginRolledBack, job.PluginRefused, job.PluginTrialFailed, job.PluginLaunchFailed, job.PluginCrashed, job.PluginBroke:
		cell.Style = show.Bad
	case job.PluginStarted, job.PluginSwapBegan, job.PluginTrialBegan, job.PluginAbandoned, job.PluginKilled, job.PluginWasDisabled,
		job.PluginWasEnabled, job.PluginFileSkipped, job.PluginEventsLost:
	}
	return cell
}
