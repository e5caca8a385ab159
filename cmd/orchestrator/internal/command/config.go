package command

import (
	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show the configuration of an orchestrator"}
	c.AddCommand(p.configShowCommand())
	return c
}

func (p *Program) configShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the settings that an orchestrator runs with",
		Long: `Show the settings that one orchestrator runs with, defaults included, in the order of
config.yaml. Secrets, and what may contain one, are left out.`,
		Args: NoArguments,
	}
	return p.asksServer(c, presents("/debug/config", func(s *session, found v1.Configuration) error {
		table := show.NewTable(s.out, "SETTING", "VALUE").WrapLast()
		for _, setting := range found.Settings {
			table.Row(setting.Key, setting.Value)
		}
		return table.Flush()
	}))
}
