package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// Exit codes, in addition to those of package command. A program that a signal stopped
// exits with 128 + signal.
const (
	exitOK      = 0
	exitFailure = command.CodeFailed
	exitUsage   = 2
)

// program is one run of the orchestrator. It is independent of the process, so that
// tests can start the real program.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// environ is the environment as os.Environ has it.
	environ []string
	// assemble builds what serve runs.
	assemble assembler

	configFile string
	sets       []string
}

// run executes the command line and returns the exit code. When ctx ends, the command
// shuts down cleanly.
func (p *program) run(ctx context.Context, args []string) int {
	understood := false
	root := p.root()
	root.SetArgs(args)
	// Called when the command line has been parsed.
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		understood = true
		return command.RefuseEmptyFlags(c)
	}

	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var said command.Exit
	if errors.As(err, &said) {
		return said.Code
	}
	// The text may repeat what plugins and servers wrote.
	_, _ = fmt.Fprintln(p.stderr, "orchestrator:", show.CleanLines(err.Error()))
	var usage usageError
	var misused command.UsageError
	var stopped stoppedError
	switch {
	case errors.As(err, &stopped):
		return stopped.exitCode()
	case !understood, errors.As(err, &usage), errors.As(err, &misused):
		return exitUsage
	}
	return exitFailure
}

// root returns the command that contains all others.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "orchestrator",
		Short:         "Run durable background jobs in plugins",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetHelpFunc(p.printHelp)
	root.PersistentFlags().StringVar(&p.configFile, "config", "",
		"configuration `file` (config.yaml in the working directory when there is one)")
	root.PersistentFlags().StringArrayVar(&p.sets, "set", nil,
		"set one key, as in --set server.address=:9000; repeatable, wins over file and environment (`key=value`)")
	root.AddCommand(p.serveCommand(), p.migrateCommand(), p.healthCommand(), p.versionCommand(), p.licensesCommand(), p.benchCommand(),
		p.exportCommand(), p.importCommand(), p.capacityCommand())
	p.clients().AddTo(root)
	p.addAuthorCommands(root)
	refuseUnknownCommands(root)
	return root
}

// load reads the configuration.
func (p *program) load() (config.Config, error) {
	cfg, err := config.Load(config.Sources{File: p.configFile, Environ: p.environ, Sets: p.sets})
	if err != nil {
		return cfg, usageError{err}
	}
	return cfg, nil
}

// usageError is a mistake in the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
