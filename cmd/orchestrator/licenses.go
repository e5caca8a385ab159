package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/licenses"
)

// licensesCommand is so that the texts are wherever the program is.
func (p *program) licensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licenses of the software in this program",
		Long: `Print the licenses of the software that this program and the built-in handlers
contain beside their own code.`,
		Args: command.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.stdout, licenses.ThirdParty)
			return err
		},
	}
}
