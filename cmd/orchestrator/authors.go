package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/author"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

// addAuthorCommands adds the commands for people who write plugins to the group
// that has those for operators.
func (p *program) addAuthorCommands(root *cobra.Command) {
	group, _, err := root.Find([]string{"plugins"})
	if err != nil {
		group = root // the tests of the commands notice
	}
	commands := &author.Program{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Getenv: p.getenv,
		Version: thisBuild().Version, SocketDir: socketDir(nil),
		Environment: func(added map[string]string) ([]string, error) {
			return (&config.Plugin{}).Environment(p.environ, added)
		},
		UntilSignal: endOnSignal,
		TwoSignals: func(ctx context.Context) (first, second context.Context, release func()) {
			return watchSignals(ctx, slog.New(slog.DiscardHandler))
		},
	}
	commands.AddTo(group)
}
