// Command check is a guard against jobs becoming dearer. It measures what a
// job costs in processor time, in WAL and in allocations, and compares that
// with a baseline that is kept with the code. Rates and latencies say more of
// the machine than of the code; these figures hold on any, more or less, and
// the bounds leave room for less.
//
// It reports. Only with -strict does it fail by a figure, and without it when
// nothing could be measured or compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// config says what to compare with what.
type config struct {
	// orchestrator is the program to measure.
	orchestrator string
	// database is a server whose user may create databases; the orchestrator's
	// own when empty.
	database string
	baseline string
	// write replaces the baseline in place of a comparison.
	write bool
	// strict makes a figure that is worse an error.
	strict bool
	// summary is a file that the report is appended to as Markdown, when not
	// empty.
	summary string
}

// errWorse says that figures are worse than the bounds allow.
var errWorse = errors.New("jobs cost more than the baseline and its bounds allow")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench-check:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, getenv func(string) string, out, notes io.Writer) error {
	cfg, err := parse(arguments, getenv, notes)
	if err != nil {
		return err
	}
	var before measurement
	if !cfg.write {
		// Before minutes are spent on measuring.
		if before, err = readBaseline(cfg.baseline); err != nil {
			return err
		}
	}
	now, err := measure(ctx, cfg, notes)
	if err != nil {
		return err
	}
	if cfg.write {
		if err := now.writeTo(cfg.baseline); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is written: %s\n", cfg.baseline, now.about())
		return nil
	}
	c, err := compare(before, now)
	if err != nil {
		return fmt.Errorf("%s: %w", cfg.baseline, err)
	}
	if err := c.print(out); err != nil {
		return err
	}
	if cfg.summary != "" {
		if err := appendTo(cfg.summary, c.markdown()); err != nil {
			return err
		}
	}
	if cfg.strict && c.has(worse) {
		return errWorse
	}
	return nil
}

func parse(arguments []string, getenv func(string) string, notes io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("bench-check", flag.ContinueOnError)
	flags.SetOutput(notes)
	flags.StringVar(&cfg.orchestrator, "orchestrator", "bin/orchestrator", "the `program` to measure")
	flags.StringVar(&cfg.database, "database", getenv("HOLDFAST_TEST_DATABASE_URL"),
		"a PostgreSQL server whose user may create databases; an embedded one when empty (`url`)")
	flags.StringVar(&cfg.baseline, "baseline", "test/bench/baseline.json", "the `file` of the baseline")
	flags.BoolVar(&cfg.write, "write", false, "write the baseline anew")
	flags.BoolVar(&cfg.strict, "strict", false, "fail when a figure is worse than its bound allows")
	flags.StringVar(&cfg.summary, "summary", getenv("GITHUB_STEP_SUMMARY"), "append the report to this `file`, as Markdown")
	if err := flags.Parse(arguments); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("what is %q? There are only flags", flags.Arg(0))
	}
	return cfg, nil
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}
