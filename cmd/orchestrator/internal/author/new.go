package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

func (p *Program) newCommand() *cobra.Command {
	var project project
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a project with a first handler",
		Long: `Create a project for a plugin with one handler, which builds and passes its
tests. Then print the commands that lead to a finished job. Nothing is
overwritten.

A project in Go requires the SDK's module: the version of this program if it is
a release, else the checkout that it was built from. Projects in other languages
get the package of their SDK.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("one name is needed, such as count-words; usage: %s", c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			project.Name = args[0]
			if c.Flags().Changed("dir") && project.Dir == "" {
				return command.Misused(errors.New("--dir is empty; leave it out for NAME in the working directory"))
			}
			if project.Dir == "" {
				project.Dir = project.Name
			}
			if err := project.check(); err != nil {
				return command.Misused(err)
			}
			if err := p.locateModule(&project); err != nil {
				return err
			}
			if project.Lang == "python" {
				project.Python = findPython(c.Context())
			}
			if project.Orchestrator = callOfThisProgram(); project.Orchestrator == "" {
				return errors.New("the path of this program cannot be found")
			}
			if err := project.write(); err != nil {
				return err
			}
			return p.printNextSteps(project)
		},
	}
	c.Flags().StringVar(&project.Lang, "lang", "go", "the `language`: "+strings.Join(languageNames(), ", "))
	c.Flags().StringVar(&project.Dir, "dir", "", "the `directory` to write to (NAME in the working directory)")
	c.Flags().StringVar(&project.Type, "type", "", "the job `type` (NAME in capitals)")
	c.Flags().StringVar(&project.Replace, "replace", "", "a checkout of Holdfast to take Go's SDK from (`directory`)")
	c.ValidArgsFunction = cobra.NoFileCompletions
	_ = c.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(languageNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("type", cobra.NoFileCompletions)
	_ = c.MarkFlagDirname("dir")
	_ = c.MarkFlagDirname("replace")
	return c
}

// locateModule decides where the SDK for Go comes from: a release if this program is
// one, else a checkout.
func (p *Program) locateModule(project *project) error {
	if project.Lang != "go" && project.Replace != "" {
		return command.Misused(fmt.Errorf("--replace is for projects in Go; one in %s gets the package of its SDK", project.Lang))
	}
	if project.Lang != "go" {
		return nil
	}
	project.Version = p.Version
	if project.Replace != "" {
		checkout, err := filepath.Abs(project.Replace)
		if err != nil {
			return err
		}
		if !isCheckout(checkout) {
			return command.Misused(fmt.Errorf("--replace %s: there is no go.mod of %s", project.Replace, module))
		}
		project.Replace, project.Version = checkout, "v0.0.0"
		return nil
	}
	if isRelease(project.Version) {
		return nil
	}
	here, _ := os.Getwd()
	if project.Replace = findCheckout(filepath.Dir(pathOfThisProgram()), here); project.Replace == "" {
		return fmt.Errorf("this program (%s) is not a release, so its SDK cannot be downloaded, and it is not in a checkout; "+
			"name one with --replace", project.Version)
	}
	project.Version = "v0.0.0"
	return nil
}

// importWithin bounds the search for Python.
const importWithin = 20 * time.Second

// findPython returns the first one in the PATH that has what the SDK needs;
// empty when there is none. Debian's packages belong to Debian's own Python,
// which need not be the first.
func findPython(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, importWithin)
	defer cancel()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, "python3")
		if !filepath.IsAbs(path) {
			continue
		}
		if exec.CommandContext(ctx, path, "-c", "import grpc, google.protobuf, sys; sys.exit(sys.version_info < (3, 11))").Run() == nil {
			return path
		}
	}
	return ""
}

func pathOfThisProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return path
}

// callOfThisProgram is how to call this program from any directory: by its name if
// it is in the PATH, else by its path.
func callOfThisProgram() string {
	path := pathOfThisProgram()
	found, err := exec.LookPath(filepath.Base(path))
	if err == nil {
		if resolved, err := filepath.EvalSymlinks(found); err == nil && resolved == path {
			return filepath.Base(path)
		}
	}
	if path == "" {
		return ""
	}
	return quote(path)
}

func (p *Program) printNextSteps(project project) error {
	commands := project.commands()
	last := len(commands) - 1
	text := fmt.Sprintf("Wrote %s. Next:\n\n", project.Dir)
	for _, command := range commands[:last] {
		text += "  " + command + "\n"
	}
	text += "\nThe last one keeps running. In another terminal:\n\n  " + commands[last] + "\n"
	_, err := fmt.Fprint(p.Stdout, text)
	return err
}
