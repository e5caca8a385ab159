package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// printHelp prints cobra's help, wrapped to the width of the terminal.
func (p *program) printHelp(c *cobra.Command, _ []string) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	text = strings.TrimRight(text, "\n") + "\n\n" + c.UsageString()
	screen := show.NewScreen(p.stdout, show.Never, p.getenv)
	_, _ = fmt.Fprint(c.OutOrStdout(), show.Wrap(text, screen.Width()))
}

// likeness is how many letters a suggested command may differ by.
const likeness = 2

// refuseUnknownCommands makes an unknown subcommand an error. By default, cobra
// prints the parent's help and exits with 0, which scripts take for success.
func refuseUnknownCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.RunE = help
		case "completion":
			for _, shell := range c.Commands() {
				shell.Args = command.NoArguments
			}
		}
	}
	refuseBelow(root)
}

func refuseBelow(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	// Flags that follow an unknown command belong to the command you meant.
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if c.HasAvailableSubCommands() && c.Flags().NArg() > 0 {
			return unknownCommand(c, c.Flags().Arg(0))
		}
		return inPlainWords(err)
	})
	for _, child := range c.Commands() {
		refuseBelow(child)
	}
}

// inPlainWords says what the value of a flag should be, where the error has words of Go.
func inPlainWords(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	flag := wrong.GetFlag()
	wanted, known := map[string]string{
		"bool": config.ABool, "int": config.AWholeNumber, "int64": config.AWholeNumber, "float64": config.ANumber,
		"intSlice": "whole numbers with commas between them", "duration": config.ADuration,
	}[flag.Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s: %w", flag.Name, config.Wrong(wrong.GetValue(), wanted, err))
}

func help(c *cobra.Command, args []string) error {
	about, rest, err := c.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 && about.HasAvailableSubCommands() {
		return unknownCommand(about, rest[0])
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}

// unknownCommand names similar commands, or all commands if none is similar.
func unknownCommand(c *cobra.Command, word string) error {
	c.SuggestionsMinimumDistance = likeness
	if like := c.SuggestionsFor(word); word != "" && len(like) > 0 {
		slices.Sort(like)
		return usageError{fmt.Errorf("unknown command %q for %q; did you mean %s?", word, c.CommandPath(), strings.Join(like, " or "))}
	}
	var names []string
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return usageError{fmt.Errorf("unknown command %q for %q; there are %s", word, c.CommandPath(), strings.Join(names, ", "))}
}
