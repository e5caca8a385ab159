package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

// likeness is how many letters may differ between what was typed and a command
// that is proposed.
const likeness = 2

// refuseUnknownCommands makes a word that is no command a mistake, wherever
// commands have others below them. Cobra itself answers most with their help
// and the exit code 0, which scripts take for success.
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
	// The flags behind it are those of the command that was meant.
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if c.HasAvailableSubCommands() && c.Flags().NArg() > 0 {
			return unknownCommand(c, c.Flags().Arg(0))
		}
		return err
	})
	for _, child := range c.Commands() {
		refuseBelow(child)
	}
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

// unknownCommand names the commands that are like the word, or else all that
// there are.
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
