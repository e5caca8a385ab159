// Package author has the commands for people who write plugins: new writes a
// project, run runs one job in a plugin, and check tests a plugin against the
// protocol. None of them needs a database.
package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/plugin/host"
)

// Program is what the commands need of the program that they are part of.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks into the environment; empty for what is not set.
	Getenv func(name string) string
	// Version of the program. A released program has a released SDK.
	Version string
	// SocketDir is where the sockets of plugin processes go.
	SocketDir string
	// Environment returns what a plugin process gets from the orchestrator's
	// environment, with some variables added.
	Environment func(added map[string]string) ([]string, error)
	// UntilSignal returns a context that ends at the first signal, with the
	// signal as its cause.
	UntilSignal func(context.Context) (context.Context, func())
	// TwoSignals returns a context that ends at the first signal, with the
	// signal as its cause, and one that ends at the second.
	TwoSignals func(context.Context) (first, second context.Context, release func())
}

// AddTo adds the commands to a group.
func (p *Program) AddTo(group *cobra.Command) {
	group.AddCommand(p.newCommand(), p.runCommand(), p.checkCommand())
}

// launchFlags say how the plugin is launched.
type launchFlags struct {
	args         []string
	env          []string
	startTimeout time.Duration
}

func (f *launchFlags) register(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.args, "arg", nil, "an `argument` for the binary; repeatable")
	command.AllowEmpty(c, "arg")
	c.Flags().StringArrayVar(&f.env, "env", nil, "a variable for the binary, beside PATH, HOME, TMPDIR, TZ and LANG; repeatable (`NAME=value`)")
	c.Flags().DurationVar(&f.startTimeout, "start-timeout", host.DefaultStartTimeout, "bound on each start of the binary, as plugins.*.start_timeout, a `duration`")
}

// launch is what the configuration of an orchestrator would say of the plugin.
type launch struct {
	path         string
	args, env    []string
	startTimeout time.Duration
}

func (p *Program) launch(f launchFlags, path string) (launch, error) {
	if err := host.CheckStartTimeout(f.startTimeout); err != nil {
		return launch{}, command.Misused(fmt.Errorf("--start-timeout: %w", err))
	}
	added := map[string]string{}
	for _, variable := range f.env {
		name, value, found := strings.Cut(variable, "=")
		if !found || name == "" {
			return launch{}, command.Misused(fmt.Errorf("--env %s: write NAME=value", variable))
		}
		added[name] = value
	}
	env, err := p.Environment(added)
	if err != nil {
		return launch{}, err
	}
	absolute, err := filepath.Abs(path)
	return launch{path: absolute, args: f.args, env: env, startTimeout: f.startTimeout}, err
}

// oneBinary is for commands with the path of a plugin.
func oneBinary(c *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return fmt.Errorf("the path of the plugin is missing; usage: %s", c.UseLine())
	}
	if len(args) > 1 {
		return fmt.Errorf("the argument %q is not expected; usage: %s", args[1], c.UseLine())
	}
	return nil
}

// onceFromInput refuses a second flag that reads standard input: the first would
// leave nothing.
func onceFromInput(c *cobra.Command, flags ...string) error {
	first := ""
	for _, name := range flags {
		switch flag := c.Flags().Lookup(name); {
		case flag == nil || flag.Value.String() != "-":
		case first != "":
			return command.Misused(fmt.Errorf("--%s and --%s cannot both read standard input; write @file for one", first, name))
		default:
			first = name
		}
	}
	return nil
}

// completeBinary completes the path with files, and flags with nothing.
func completeBinary(c *cobra.Command, flags ...string) {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, flag := range flags {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// verdict is the error of a command that has finished: the signal that ended it
// early, or an exit code if the plugin did not do well.
func verdict(ctx context.Context, well bool) error {
	switch cause := context.Cause(ctx); {
	case cause != nil && !errors.Is(cause, ctx.Err()):
		return cause
	case !well:
		return command.Exit{Code: command.CodeFound}
	}
	return nil
}
