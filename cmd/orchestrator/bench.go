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
	var url, dataDir, color string
	asJSON := false
	c := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure how fast this machine works jobs off",
		Long: `Measure how fast this machine works jobs off, and what a job costs. The program
starts itself as an orchestrator on databases of their own, which it makes and
drops. Whatever --set says holds for that orchestrator.

Scenarios; without any, all but sleepers:
  ` + strings.Join(bench.Names(), "\n  "),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return bench.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, names []string) error {
			ctx, release := endOnSignal(c.Context())
			defer release()
			if cfg.Runs < 1 || cfg.WarmUps < 0 || cfg.Jobs < 0 {
				return usageError{errors.New("--runs must be at least 1, --warm-ups and --jobs at least 0")}
			}
			if err := show.Colors(color).Check(); err != nil {
				return usageError{err}
			}
			for _, set := range p.sets {
				key, _, _ := strings.Cut(set, "=")
				if slices.Contains([]string{"database.url", "plugins", "plugins.0.path", "plugins.0.args"}, key) {
					return usageError{fmt.Errorf("--set %s: the bench has databases and handlers of its own; see --database", set)}
				}
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			cfg.Program, cfg.Version, cfg.Settings, cfg.URL = program, thisBuild().Version, p.sets, url
			cfg.Notes = show.NewScreen(p.stderr, show.Colors(color), p.getenv)
			if cfg.URL == "" {
				server, err := embedded.Start(ctx, embedded.Config{DataDir: dataDir, Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					return err
				}
				defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }()
				cfg.URL = server.URL()
			}
			report, err := bench.Run(ctx, cfg, names)
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			if errors.Is(err, bench.ErrNoScenario) {
				return usageError{err}
			}
			if report == nil {
				return err
			}
			return errors.Join(err, p.showBench(report, asJSON, show.Colors(color)))
		},
	}
	c.Flags().StringVar(&url, "database", "", "a PostgreSQL server whose user may create databases (an embedded one when empty) (`url`)")
	c.Flags().StringVar(&dataDir, "data-dir", "data/bench", "where the embedded PostgreSQL keeps its data")
	c.Flags().IntVar(&cfg.Runs, "runs", 5, "how often each scenario is measured")
	c.Flags().IntVar(&cfg.WarmUps, "warm-ups", 1, "runs before those, which are not measured")
	c.Flags().IntVar(&cfg.Jobs, "jobs", 0, "jobs in a run (0: the scenario's own number)")
	c.Flags().BoolVar(&cfg.Fresh, "fresh", false, "no statistics for the planner, as on the first day")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the value of every run")
	c.Flags().StringVar(&color, "color", string(show.Auto), "auto, always or never")
	c.AddCommand(&cobra.Command{
		Use: "handlers DIRECTORY", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Be the handlers of the bench, which asks in the directory what they allocate",
		Run:   func(_ *cobra.Command, args []string) { bench.ServeHandlers(args[0]) },
	})
	return c
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
