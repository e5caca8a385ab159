package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/plugin/conformance"
)

// sampleFlags name a job for the checks.
type sampleFlags struct {
	prefix           string
	jobType, payload string
	flags            *pflag.FlagSet
}

func (f *sampleFlags) register(c *cobra.Command, what string) {
	f.flags = c.Flags()
	c.Flags().StringVar(&f.jobType, f.prefix+"type", "", "the `type` of "+what)
	c.Flags().StringVar(&f.payload, f.prefix+"payload", "", "its payload: `JSON`, @file, or - for standard input")
}

// read returns no sample if no flag is set. The type may be left out for another
// sample's.
func (f *sampleFlags) read(ctx context.Context, p *Program, otherwise string) (conformance.Sample, error) {
	switch typed, paid := f.flags.Changed(f.prefix+"type"), f.flags.Changed(f.prefix+"payload"); {
	case !typed && !paid:
		return conformance.Sample{}, nil
	case !paid:
		return conformance.Sample{}, command.Misused(fmt.Errorf("--%stype needs --%spayload", f.prefix, f.prefix))
	}
	payload, err := command.ReadPayload(ctx, f.payload, p.Stdin)
	if err != nil {
		return conformance.Sample{}, fmt.Errorf("--%spayload: %w", f.prefix, err)
	}
	s := conformance.Sample{Type: f.jobType, Payload: payload}
	if s.Type == "" {
		s.Type = otherwise
	}
	return s, nil
}

func (p *Program) checkCommand() *cobra.Command {
	var flags launchFlags
	work, slow, fail := sampleFlags{}, sampleFlags{prefix: "slow-"}, sampleFlags{prefix: "fail-"}
	var options conformance.Options
	var color string
	asJSON := false
	c := &cobra.Command{
		Use:   "check BINARY",
		Short: "Check that a plugin follows the protocol",
		Long: `Check that a plugin follows the protocol: launch it repeatedly, send it jobs,
cancel and drain them, let leases run out, and kill it. No database is needed.

The jobs really run, some of them several times. Checks that need a job that
succeeds, runs for long or fails are skipped unless flags name one. A type is
not needed if the plugin has one handler.

Checks: ` + strings.Join(conformance.Names(), ", "),
		Args: oneBinary,
		RunE: func(c *cobra.Command, args []string) error {
			launch, err := p.launch(flags, args[0])
			if err != nil {
				return err
			}
			options.Path, options.Args, options.Env, options.StartTimeout = launch.path, launch.args, launch.env, launch.startTimeout
			if err := onceFromInput(c, "payload", "slow-payload", "fail-payload"); err != nil {
				return err
			}
			if err := show.Colors(color).Check(); err != nil {
				return command.Misused(err)
			}
			if options.Work, err = work.read(c.Context(), p, ""); err != nil {
				return err
			}
			if options.Slow, err = slow.read(c.Context(), p, work.jobType); err != nil {
				return err
			}
			if options.Fail, err = fail.read(c.Context(), p, work.jobType); err != nil {
				return err
			}
			return p.checkPlugin(c.Context(), options, asJSON, show.Colors(color))
		},
	}
	flags.register(c)
	work.register(c, "a job that succeeds, soon")
	slow.register(c, "a job that runs for at least 30 s, unless it is stopped")
	fail.register(c, "a job that fails")
	c.Flags().StringSliceVar(&options.Only, "only", nil, "make only these `checks`, and that of the manifest")
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	c.Flags().StringVar(&color, "color", string(show.Auto), "auto, always or never")
	completeBinary(c, "type", "payload", "slow-type", "slow-payload", "fail-type", "fail-payload", "arg", "env", "start-timeout")
	_ = c.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(conformance.Names(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// checkHandler prints each check when it is done. What is broken is an outcome
// that is bad, not a failure of the command.
func (p *Program) checkPlugin(ctx context.Context, options conformance.Options, asJSON bool, colors show.Colors) error {
	ctx, release := p.UntilSignal(ctx)
	defer release()
	out := show.NewScreen(p.Stdout, colors, p.Getenv)
	line := show.NewLine(show.NewScreen(p.Stderr, colors, p.Getenv))
	options.Begin = func(name string) { line.Set(name + " …") }
	options.End = func(c conformance.Check) {
		line.Clear()
		if !asJSON {
			out.Print(describeCheck(out, c))
		}
	}
	report, err := conformance.Run(ctx, options)
	line.Clear()
	var misused conformance.OptionsError
	switch {
	case errors.As(err, &misused):
		return command.Misused(err)
	case err != nil:
		return err
	}
	if asJSON {
		encoded, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		if err := out.JSON(encoded); err != nil {
			return err
		}
	} else {
		out.Print(fmt.Sprintf("\n%d passed, %d failed, %d skipped\n",
			report.Count(conformance.Passed), report.Count(conformance.Failed), report.Count(conformance.Skipped)))
	}
	return verdict(ctx, report.Count(conformance.Failed) == 0)
}

// describeCheck is one line for a check, and three for one that has failed.
func describeCheck(out show.Screen, c conformance.Check) string {
	marks := map[conformance.Status]string{
		conformance.Passed:  out.Paint(show.Good, "ok     "),
		conformance.Failed:  out.Paint(show.Bad, "FAILED "),
		conformance.Skipped: out.Paint(show.Mind, "skipped"),
	}
	column := 0
	for _, name := range conformance.Names() {
		column = max(column, len(name))
	}
	text := fmt.Sprintf("%s  %-*s  %s\n", marks[c.Status], column, c.Name, show.Clean(c.Happened))
	if c.Status == conformance.Failed {
		text += fmt.Sprintf("         expected: %s\n         to fix:   %s\n", c.Expected, c.Fix)
	}
	return text
}
