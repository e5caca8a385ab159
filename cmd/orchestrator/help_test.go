package main

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// helpOn returns the help of a command on a terminal with so many columns.
func helpOn(t *testing.T, columns uint16, path ...string) string {
	t.Helper()
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { _ = screen.Close() }()
	require.NoError(t, pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: columns}))
	seen := make(chan string, 1)
	go func() {
		var out bytes.Buffer
		_, _ = io.Copy(&out, screen) // It ends when nobody has the terminal open.
		seen <- strings.ReplaceAll(out.String(), "\r\n", "\n")
	}()
	p := program{stdout: terminal, stderr: &bytes.Buffer{}, assemble: assemble}
	code := p.run(t.Context(), append(path, "--help"))
	require.NoError(t, terminal.Close())
	require.Equal(t, exitOK, code)
	return <-seen
}

func everyPath() [][]string {
	p := program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, assemble: assemble}
	root := p.root()
	root.InitDefaultCompletionCmd()
	paths := [][]string{{}, {"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}, {"completion", "powershell"}}
	eachCommand(root, func(c *cobra.Command) { paths = append(paths, strings.Fields(c.CommandPath())[1:]) })
	return paths
}

func TestHelpFitsTheTerminal(t *testing.T) {
	for _, path := range everyPath() {
		whole := helpOn(t, 500, path...)
		for _, columns := range []int{60, 80} {
			t.Run(strings.Join(path, " ")+" "+strconv.Itoa(columns), func(t *testing.T) {
				text := helpOn(t, uint16(columns), path...)
				require.Equal(t, strings.Fields(whole), strings.Fields(text), "the same words")
				copied := false
				for line := range strings.Lines(text) {
					line = strings.TrimSuffix(line, "\n")
					// Text for copying is not wrapped; our own examples fit 80 columns.
					copied = line == "Examples:" || copied && line != ""
					if columns < 80 && copied || strings.HasPrefix(line, "\t") {
						continue
					}
					require.LessOrEqual(t, show.Width(line), columns, text)
				}
			})
		}
	}
}

func TestHelpIsEightyColumnsWideWithoutATerminal(t *testing.T) {
	code, stdout, _ := execute(t, nil, "submit", "--help")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, `
Global Flags:
      --config file     configuration file (config.yaml in the working directory
                        when there is one)
`)
}
