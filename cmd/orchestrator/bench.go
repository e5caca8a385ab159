package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/bench"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/store/embedded"
)

func (p *program) benchCommand() *cobra.Command {
	var cfg bench.Config
	var dataDir, color string
	asJSON := false
	c := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure how fast this machine runs jobs",
		Long: `Measure how fast this machine runs jobs, and what a job costs. The program starts
itself as an orchestrator on databases that it creates and drops. --set applies to
that orchestrator.

Scenarios; all but sleepers when you name none:
  ` + strings.Join(bench.Names(), "\n  "),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var scenarios []cobra.Completion
			for _, scenario := range bench.Names() {
				name, about, _ := strings.Cut(scenario, " ")
				scenarios = append(scenarios, cobra.CompletionWithDesc(name, strings.TrimSpace(about)))
			}
			return scenarios, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, names []string) error {
			if cfg.Runs < 1 || cfg.WarmUps < 0 || cfg.Jobs < 0 {
				return usageError{errors.New("--runs must be at least 1, --warm-ups and --jobs at least 0")}
			}
			if err := show.Colors(color).Check(); err != nil {
				return usageError{err}
			}
			return p.benching(c.Context(), cfg, dataDir, show.Colors(color), func(ctx context.Context, cfg bench.Config) error {
				report, err := bench.Run(ctx, cfg, names)
				if errors.Is(err, bench.ErrNoScenario) {
					return usageError{err}
				}
				if report == nil {
					return err
				}
				return errors.Join(err, p.showBench(report, asJSON, show.Colors(color)))
			})
		},
	}
	flags := c.Flags()
	flags.IntVar(&cfg.Runs, "runs", 5, "how often each scenario is measured")
	flags.IntVar(&cfg.WarmUps, "warm-ups", 1, "runs before those, which are not measured")
	flags.IntVar(&cfg.Jobs, "jobs", 0, "jobs in a run (0: the scenario's own number)")
	flags.BoolVar(&cfg.Fresh, "fresh", false, "no statistics for the planner, as on the first day")
	flags.BoolVar(&asJSON, "json", false, "print JSON, with the value of every run")
	flags.StringVar(&color, "color", string(show.Auto), "auto, always or never")
	benchServer(c, &cfg.URL, "", &dataDir)
	c.AddCommand(p.benchCheckCommand(), &cobra.Command{
		Use: "handlers DIRECTORY", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Run the handlers of the bench, which report their allocations in the directory",
		Run:   func(_ *cobra.Command, args []string) { bench.ServeHandlers(args[0]) },
	})
	return c
}

// benchCheckCommand is for those who work on Holdfast itself: make bench-check.
func (p *program) benchCheckCommand() *cobra.Command {
	var cfg bench.Config
	var check bench.Check
	var dataDir string
	c := &cobra.Command{
		Use: "check", Hidden: true, Args: cobra.NoArgs,
		Short: "Compare what a job costs with a baseline",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.benching(c.Context(), cfg, dataDir, show.Auto, func(ctx context.Context, cfg bench.Config) error {
				return check.Run(ctx, cfg, show.NewScreen(p.stdout, show.Auto, p.getenv))
			})
		},
	}
	benchServer(c, &cfg.URL, p.getenv("HOLDFAST_TEST_DATABASE_URL"), &dataDir)
	c.Flags().StringVar(&check.Baseline, "baseline", "test/bench/baseline.json", "the `file` of the baseline")
	c.Flags().BoolVar(&check.Write, "write", false, "write a new baseline")
	c.Flags().BoolVar(&check.Strict, "strict", false, "fail when a figure is beyond its bound")
	c.Flags().StringVar(&check.Summary, "summary", p.getenv("GITHUB_STEP_SUMMARY"), "append the report to this `file`, as Markdown")
	return c
}

// benchServer registers the flags that name the PostgreSQL to measure on.
func benchServer(c *cobra.Command, url *string, usual string, dataDir *string) {
	c.Flags().StringVar(url, "database", usual, "a PostgreSQL server whose user may create databases (an embedded one when empty) (`url`)")
	c.Flags().StringVar(dataDir, "data-dir", "data/bench", "where the embedded PostgreSQL keeps its data")
}

// benching calls do with a configuration that is complete: on the given server, or
// on an embedded one that ends with it.
func (p *program) benching(
	parent context.Context, cfg bench.Config, dataDir string, colors show.Colors, do func(context.Context, bench.Config) error,
) error {
	ctx, release := endOnSignal(parent)
	defer release()
	for _, set := range p.sets {
		key, _, _ := strings.Cut(set, "=")
		if slices.Contains([]string{"database.url", "plugins", "plugins.0.path", "plugins.0.args"}, key) {
			return usageError{fmt.Errorf("--set %s: the bench has databases and plugins of its own; see --database", set)}
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cfg.Program, cfg.Version, cfg.Settings = program, thisBuild().Version, p.sets
	cfg.Notes = show.NewScreen(p.stderr, colors, p.getenv)
	if cfg.URL == "" {
		server, err := embedded.Start(ctx, embedded.Config{DataDir: dataDir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }()
		cfg.URL = server.URL()
	}
	err = do(ctx, cfg)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (p *program) showBench(report *bench.Report, asJSON bool, colors show.Colors) error {
	if !asJSON {
		return report.Print(show.NewScreen(p.stdout, colors, p.getenv))
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, string(text))
	return err
}
