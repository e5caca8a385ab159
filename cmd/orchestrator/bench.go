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
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/bench"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/internal/pgbouncer"
	"github.com/holdfast-jobs/holdfast/store/embedded"
)

func (p *program) benchCommand() *cobra.Command {
	var cfg bench.Config
	var dataDir, color string
	asJSON, pooled := false, false
	c := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure how fast this machine runs jobs",
		Long: `Measure how fast this machine runs jobs, and what a job costs. The program starts
itself as an orchestrator on databases that it creates and drops. --set applies to
that orchestrator.

Scenarios; all but sleepers and fleet when you name none:
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
			if cfg.Runs < 1 || cfg.Batch < 1 || cfg.WarmUps < 0 || cfg.Jobs < 0 {
				return usageError{errors.New("--runs and --batch must be at least 1, --warm-ups and --jobs at least 0")}
			}
			if cfg.Keys.Number < 0 || cfg.Keys.Limit < 0 || cfg.Keys.Number == 0 && cfg.Keys.Limit > 0 {
				return usageError{errors.New("--keys and --concurrency-limit must be at least 0, and a limit needs keys")}
			}
			if err := errors.Join(bench.Check(names), onlyForFleet(c.Flags(), names), cfg.Fleet.Validate(), show.Colors(color).Check()); err != nil {
				return usageError{err}
			}
			if pooled {
				var err error
				if cfg.Fleet.Pooler, err = pgbouncer.Find(); err != nil {
					return fmt.Errorf("--pgbouncer: %w", err)
				}
			}
			report, err := p.bench(c.Context(), cfg, dataDir, names, show.Colors(color))
			if report == nil {
				return err
			}
			return errors.Join(err, p.showBench(report, asJSON, show.Colors(color)))
		},
	}
	flags := c.Flags()
	flags.IntVar(&cfg.Runs, "runs", 5, "how often each scenario is measured")
	flags.IntVar(&cfg.WarmUps, "warm-ups", 1, "runs before those, which are not measured")
	flags.IntVar(&cfg.Jobs, "jobs", 0, "jobs in a run (0: the scenario's own number)")
	flags.IntVar(&cfg.Batch, "batch", 500, "jobs in a batch of submit and e2e")
	flags.IntVar(&cfg.Keys.Number, "keys", 0, "how many concurrency keys the jobs of workoff, single, submit and e2e have (0: none)")
	flags.IntVar(&cfg.Keys.Limit, "concurrency-limit", 0, "how many jobs of a key may run at once (0: any number)")
	flags.IntSliceVar(&cfg.Fleet.Sizes, "orchestrators", []int{2, 10, 50}, "how many orchestrators fleet has, one number after the other")
	flags.IntVar(&cfg.Fleet.Processes, "processes", 2, "in how many processes, at most, the orchestrators of fleet run")
	flags.BoolVar(&pooled, "pgbouncer", false, "put PgBouncer between the orchestrators of fleet and the database")
	flags.IntVar(&cfg.Fleet.Rate, "rate", 2000, "how many jobs a second the batches of fleet bring")
	flags.IntVar(&cfg.Fleet.Types, "types", 50, "how many job types each orchestrator of fleet serves")
	flags.IntVar(&cfg.Fleet.Plugins, "plugins", 2, "in how many plugins the types of fleet are")
	flags.BoolVar(&cfg.Fresh, "fresh", false, "no statistics for the planner, as on the first day; fleet never gathers any")
	flags.BoolVar(&asJSON, "json", false, "print JSON, with the value of every run")
	flags.StringVar(&color, "color", string(show.Auto), "auto, always or never")
	flags.StringVar(&cfg.URL, "database", "", "a PostgreSQL server whose user may create databases (an embedded one when empty) (`url`)")
	flags.StringVar(&dataDir, "data-dir", "data/bench", "where the embedded PostgreSQL keeps its data")
	flags.StringVar(&cfg.Profiles.CPU, "cpuprofile", "", "where to write profiles of processor time for pprof (`directory`)")
	flags.StringVar(&cfg.Profiles.Memory, "memprofile", "", "where to write profiles of allocations for pprof (`directory`)")
	var workers []string
	serve := measured("serve", "Be the orchestrator that is measured", "orchestrator", func(ctx context.Context) error {
		return p.serveAs(ctx, workers)
	})
	serve.Flags().StringArrayVar(&workers, "worker", nil, "be an orchestrator with this `id`, and others beside it; repeatable")
	c.AddCommand(
		serve,
		measured("handlers", "Be the handlers of the orchestrator that is measured", "handlers", func(context.Context) error {
			bench.ServeHandlers()
			return nil
		}),
	)
	return c
}

// onlyForFleet returns an error if there are flags of the scenario fleet without that scenario.
func onlyForFleet(flags *pflag.FlagSet, names []string) error {
	if slices.Contains(names, bench.FleetScenario) {
		return nil
	}
	for _, name := range []string{"orchestrators", "processes", "pgbouncer", "rate", "types", "plugins"} {
		if flags.Changed(name) {
			return fmt.Errorf("--%s is for the scenario %s, and that is not named", name, bench.FleetScenario)
		}
	}
	return nil
}

// serveAs serves once for each of the workers' ids, in one process; without ids once, as the
// configuration says. It returns when all have ended, and one that fails ends the others.
func (p *program) serveAs(ctx context.Context, workers []string) error {
	defer raiseHeapFloor()()
	if len(workers) == 0 {
		return p.serve(ctx)
	}
	serving, ctx := errgroup.WithContext(ctx)
	for _, id := range workers {
		one := *p
		one.sets = append(slices.Clone(p.sets), "worker.id="+id)
		serving.Go(func() error { return one.serve(ctx) })
	}
	return serving.Wait()
}

// measured is the command of a process that the bench starts and sees into.
func measured(name, short, of string, run func(context.Context) error) *cobra.Command {
	probe := bench.Probe{Of: of}
	c := &cobra.Command{
		Use: name + " DIRECTORY", Short: short, Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			probe.Directory = args[0]
			listening, err := probe.Listen()
			if err != nil {
				return err
			}
			return errors.Join(run(c.Context()), listening.Close())
		},
	}
	c.Flags().BoolVar(&probe.CPU, "cpu", false, "make profiles of processor time")
	c.Flags().BoolVar(&probe.Memory, "memory", false, "make profiles of allocations")
	return c
}

// bench measures on the given server, or on an embedded one that ends with it.
func (p *program) bench(
	parent context.Context, cfg bench.Config, dataDir string, names []string, colors show.Colors,
) (*bench.Report, error) {
	ctx, release := endOnSignal(parent)
	defer release()
	for _, set := range p.sets {
		key, _, _ := strings.Cut(set, "=")
		if slices.Contains([]string{"database.url", "plugins", "plugins.0.path", "plugins.0.args"}, key) {
			return nil, usageError{fmt.Errorf("--set %s: the bench has databases and plugins of its own; see --database", set)}
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg.Program, cfg.Version, cfg.Settings = program, thisBuild().Version, p.sets
	cfg.Notes = show.NewScreen(p.stderr, colors, p.getenv)
	if cfg.URL == "" {
		settings := embedded.Config{DataDir: dataDir, Log: slog.New(slog.DiscardHandler)}
		if slices.Contains(names, bench.FleetScenario) {
			settings.Settings = bench.FleetSettings()
		}
		server, err := embedded.Start(ctx, settings)
		if err != nil {
			return nil, err
		}
		defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }()
		cfg.URL = server.URL()
	}
	report, err := bench.Run(ctx, cfg, names)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return report, cause
	}
	return report, err
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
