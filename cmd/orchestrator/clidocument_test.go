package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var (
	documented   = regexp.MustCompile("(?m)^### `([a-z -]+)`$")
	aFlag        = regexp.MustCompile("`--([a-z-]+)`")
	flagRow      = regexp.MustCompile("(?m)^\\| (`--.*?) \\|")
	ofEvery      = regexp.MustCompile(`(?s)\| of every command \|.*?\n\n`)
	ofEveryInAPI = regexp.MustCompile(`(?s)\| of every command that speaks to the API \|.*?\n\n`)
)

// flagsIn returns the flags in the first column of tables.
func flagsIn(text string) []string {
	var names []string
	for _, row := range flagRow.FindAllStringSubmatch(text, -1) {
		for _, name := range aFlag.FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

func TestDocumentHasEveryCommandAndFlag(t *testing.T) {
	content, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	document := string(content)
	common, ofAPI := flagsIn(ofEvery.FindString(document)), flagsIn(ofEveryInAPI.FindString(document))
	require.Equal(t, []string{"config", "set", "help"}, common)
	require.Equal(t, []string{"server", "cells", "direct", "json", "color"}, ofAPI)

	described := map[string][]string{}
	var names []string
	headings := documented.FindAllStringSubmatchIndex(document, -1)
	for i, at := range headings {
		end := len(document)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		name := document[at[2]:at[3]]
		names = append(names, name)
		described[name] = flagsIn(document[at[1]:end])
	}

	p := program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, assemble: assemble}
	root := p.root()
	root.InitDefaultCompletionCmd()
	var known []string
	eachCommand(root, func(c *cobra.Command) {
		known = append(known, c.CommandPath())
		var flags []string
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			isCommon := c.Flags().Lookup("server") != nil && slices.Contains(ofAPI, f.Name)
			if !isCommon && !slices.Contains(common, f.Name) {
				flags = append(flags, f.Name)
			}
		})
		require.ElementsMatch(t, flags, described[c.CommandPath()], c.CommandPath())
		require.NotEmpty(t, c.Short, c.CommandPath())
	})
	require.ElementsMatch(t, known, names)
}

// eachCommand walks all commands except the root and those below completion.
func eachCommand(c *cobra.Command, see func(*cobra.Command)) {
	for _, child := range c.Commands() {
		if child.Name() == "help" || child.Hidden {
			continue
		}
		see(child)
		if child.Name() != "completion" {
			eachCommand(child, see)
		}
	}
}

func TestDocumentNamesEveryVariable(t *testing.T) {
	content, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	for _, name := range []string{config.EnvServer, config.EnvToken, config.EnvUser, config.EnvPassword, "NO_COLOR", "TERM"} {
		require.Contains(t, string(content), "`"+name+"`")
	}
	for line := range strings.Lines(string(content)) {
		require.NotContains(t, line, "TRANSCRIPT")
	}
}
