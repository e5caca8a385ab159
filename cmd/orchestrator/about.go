package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/licenses"
)

// release is set by the linker for released binaries.
var release string

// build says what this binary was made of.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

func thisBuild() build {
	b := build{Version: release, Commit: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			b.Commit = setting.Value
		}
	}
	return b
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  command.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return json.NewEncoder(p.stdout).Encode(b)
			}
			_, err := fmt.Fprintf(p.stdout, "orchestrator %s (commit %s, %s)\n", b.Version, b.Commit, b.Go)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// licensesCommand prints the license texts, so that they come with every copy of the
// program.
func (p *program) licensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licenses of the software in this program",
		Long: `Print the licenses of the software that this program and the built-in handlers
contain besides their own code.`,
		Args: command.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.stdout, licenses.ThirdParty)
			return err
		},
	}
}
