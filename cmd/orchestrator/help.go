package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// printHelp is what cobra says of a command, fitted to the terminal.
func (p *program) printHelp(c *cobra.Command, _ []string) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	text = strings.TrimRight(text, "\n") + "\n\n" + c.UsageString()
	screen := show.NewScreen(p.stdout, show.Never, p.getenv)
	_, _ = fmt.Fprint(c.OutOrStdout(), show.Wrap(text, screen.Width()))
}
