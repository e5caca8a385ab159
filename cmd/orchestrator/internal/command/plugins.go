package command

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) handlersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "plugins",
		Aliases: []string{"handlers"},
		Short:   "Look after the handlers of an orchestrator, or write new ones",
		Long: `Look after the handlers of an orchestrator: of the one that is asked, not of
others on the same database. Or write, try and check new ones, without any.`,
	}
	c.AddCommand(
		p.handlersListCommand(), p.handlersSwapCommand(),
		p.handlersActCommand("restart", "Replace the processes by others of the same version",
			`Replace the processes by others of the same version. The new ones start before
the old ones finish what they have. The exit code is 3 when they fail to start;
the old ones go on then.`),
		p.handlersActCommand("disable", "Stop a handler when it has finished what it has",
			`Stop a handler when it has finished what it has. Its jobs stay queued. It stays
so until it is enabled, or the orchestrator starts again.`),
		p.handlersEnableCommand())
	return c
}

func (p *Program) handlersListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the handlers, their versions and how they were last replaced",
		Args:  NoArguments,
	}
	return p.asksServer(c, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.Plugins(ctx)
		if err != nil {
			return err
		}
		return present(s, answer, func(found v1.PluginList) error { return s.showHandlers(found.Plugins) })
	})
}

func (p *Program) handlersSwapCommand() *cobra.Command {
	force := false
	c := &cobra.Command{
		Use:   "swap NAME",
		Short: "Replace a handler by what its file is now",
		Long: `Replace a handler by what its file is now, as by itself when the file changes:
the new version starts beside the old one, is compared and tried, and serves or
is rolled back. The exit code is 3 when it does not serve.`,
		Args: oneArgument,
	}
	c.Flags().BoolVar(&force, "force", false, "replace it even if there are jobs that the new version could not do")
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		return s.swapHandler(ctx, args[0], "swap", forced(force))
	})
}

func (p *Program) handlersActCommand(action, short, long string) *cobra.Command {
	c := &cobra.Command{Use: action + " NAME", Short: short, Long: long, Args: oneArgument}
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		if action == "restart" {
			return s.swapHandler(ctx, args[0], action, nil)
		}
		return s.operateHandler(ctx, args[0], action, nil)
	})
}

func (p *Program) handlersEnableCommand() *cobra.Command {
	force := false
	c := &cobra.Command{
		Use:   "enable NAME",
		Short: "Start a handler that was disabled",
		Long: `Start a handler that was disabled, with what its file is now; but when that was
rolled back or refused, with the version that served before.`,
		Args: oneArgument,
	}
	c.Flags().BoolVar(&force, "force", false, "take its file as it is, also when that was rolled back or refused")
	return p.asksServer(c, func(ctx context.Context, s *session, args []string) error {
		return s.operateHandler(ctx, args[0], "enable", forced(force))
	})
}

// forced is the query of what may be done by force.
func forced(force bool) url.Values {
	if !force {
		return nil
	}
	return url.Values{"force": {"true"}}
}

// operateHandler does something with a handler that is answered with what it is then.
func (s *session) operateHandler(ctx context.Context, name, action string, query url.Values) error {
	answer, err := s.OnPlugin(ctx, name, action, query)
	if err != nil {
		return err
	}
	return present(s, answer, func(h v1.Plugin) error { return s.showHandlers([]v1.Plugin{h}) })
}

func (s *session) showHandlers(handlers []v1.Plugin) error {
	table := show.NewTable(s.out,
		show.Column{Name: "PLUGIN"}, show.Column{Name: "STATE"}, show.Column{Name: "VERSION"},
		show.Column{Name: "PROCESSES", Right: true}, show.Column{Name: "RUNNING", Right: true}, show.Column{Name: "FREE", Right: true},
		show.Column{Name: "CRASHES", Right: true}, show.Column{Name: "LAST SWAP"})
	for _, h := range handlers {
		state := show.Cell{Text: string(h.State)}
		switch h.State {
		case job.PluginUp:
			state.Style = show.Good
		case job.PluginBroken:
			state.Style = show.Bad
		}
		table.Row(show.Text(h.Name), state, show.Text(versionText(h.PluginVersion)),
			show.Text(strconv.Itoa(len(h.PIDs))+"/"+strconv.Itoa(h.Processes)),
			number(int64(h.Running+h.Isolated+h.Draining)), number(int64(h.Free)), alarming(int64(h.Crashes)), s.lastSwapCell(h))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, h := range handlers {
		s.remark(h)
	}
	return nil
}

// remark tells of a handler what has no place in a table.
func (s *session) remark(h v1.Plugin) {
	say := func(format string, values ...any) {
		s.notes.Print(show.Clean(h.Name+": "+fmt.Sprintf(format, values...)) + "\n")
	}
	if c := h.Candidate; c != nil {
		say("%s is to follow (%s): %s", versionText(c.PluginVersion), c.State, trialText(c.PluginTrial))
	}
	if swap := h.LastSwap; swap != nil && swap.Reason != "" {
		to := versionText(swap.To)
		if to == "" { // there was no file to read a version from
			to = "what was to follow"
		}
		promoted, serves := swap.Result == job.SwapPromoted, swap.To.SHA256 == h.SHA256
		switch {
		case promoted && serves && h.State != job.PluginDisabled: // the reason is why the one before it does not
			say("%s serves again: %s", to, swap.Reason)
		case promoted: // another one was enabled since, or none serves
		case serves: // it was to follow itself, or was enabled since
			say("%s did not take over: %s", to, swap.Reason)
		default:
			say("%s does not serve: %s", to, swap.Reason)
		}
	}
	if len(h.SkippedJobTypes) > 0 {
		say("it declares job types that the configuration does not leave to it: %s", strings.Join(h.SkippedJobTypes, ", "))
	}
	if h.SkipReason != "" {
		say("its file is passed over: %s", h.SkipReason)
	}
	if h.LastError != "" && h.State != job.PluginUp {
		say("%s", h.LastError)
	}
}

// trialText says how a candidate does.
func trialText(t v1.PluginTrial) string {
	text := fmt.Sprintf("%d attempts ended on trial, %d of them failed", t.Ended, t.Failed)
	if p := t.Slowest; p != nil {
		text += fmt.Sprintf("; %s takes %s, median, beside %s", p.JobType, exact(p.MedianSeconds), exact(p.ServingMedianSeconds))
	}
	return text
}

func (s *session) lastSwapCell(h v1.Plugin) show.Cell {
	switch {
	case h.LastSwap == nil:
		return show.Text("")
	case h.LastSwap.EndedAt == nil:
		return show.Text("under way")
	}
	cell := resultCell(h.LastSwap.Result)
	cell.Text += " " + s.ago(*h.LastSwap.EndedAt) + " ago"
	return cell
}

func resultCell(result job.SwapResult) show.Cell {
	cell := show.Cell{Text: strings.ReplaceAll(string(result), "_", " "), Style: show.Bad}
	if result == job.SwapPromoted {
		cell.Style = show.Good
	}
	return cell
}

// versionText is a version with as much of its digest as tells it from others.
func versionText(v v1.PluginVersion) string {
	short := v.SHA256[:min(len(v.SHA256), 8)]
	if v.Version == "" {
		return short
	}
	return v.Version + " (" + short + ")"
}
