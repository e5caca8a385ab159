package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

// addAuthorsTools adds the commands for authors of handlers to the group
// "handlers", which has commands for operators already.
func (p *program) addAuthorsTools(root *cobra.Command) {
	handlers, _, err := root.Find([]string{"handlers"})
	if err != nil {
		handlers = root // which the tests of the commands would tell
	}
	handlers.AddCommand(p.handlersNewCommand(), p.handlersRunCommand(), p.handlersCheckCommand())
}

// launchFlags say how the binary of a handler is launched.
type launchFlags struct {
	args []string
	env  []string
}

func (f *launchFlags) register(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.args, "arg", nil, "an `argument` for the binary; repeatable")
	command.AllowEmpty(c, "arg")
	c.Flags().StringArrayVar(&f.env, "env", nil, "a variable for the binary, beside PATH, HOME, TMPDIR, TZ and LANG; repeatable (`NAME=value`)")
}

// config is what the configuration of an orchestrator would say of the binary.
func (f *launchFlags) config(path string) (handlerConfig, error) {
	h := handlerConfig{Path: path, Args: f.args, Env: map[string]string{}}
	for _, variable := range f.env {
		name, value, found := strings.Cut(variable, "=")
		if !found || name == "" {
			return h, usageError{fmt.Errorf("--env %s: write NAME=value", variable)}
		}
		h.Env[name] = strings.ReplaceAll(value, "${", "$${") // The shell has replaced what it was to.
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return h, err
	}
	h.Path, h.Name = absolute, filepath.Base(absolute)
	return h, nil
}

// oneBinary is for commands with the path of a handler binary.
func oneBinary(c *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return fmt.Errorf("the path of the handler binary is missing; usage: %s", c.UseLine())
	}
	if len(args) > 1 {
		return fmt.Errorf("the argument %q is not expected; usage: %s", args[1], c.UseLine())
	}
	return nil
}

// onceFromInput refuses a second flag that reads standard input: it would find
// nothing there.
func onceFromInput(c *cobra.Command, flags ...string) error {
	first := ""
	for _, name := range flags {
		switch flag := c.Flags().Lookup(name); {
		case flag == nil || flag.Value.String() != "-":
		case first != "":
			return usageError{fmt.Errorf("--%s and --%s cannot both read standard input; write @file for one", first, name)}
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
