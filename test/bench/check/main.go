// Command check compares what a job costs in processor time, WAL and allocations with a
// baseline that is kept with the code. It runs the orchestrator's bench, in about two
// minutes. Rates and latencies depend mostly on the machine; these figures hold on most
// machines, and their bounds allow for the rest.
//
// Usage, in the root of the checkout: check [-strict] [-write]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var c check
	var b bench
	flag.StringVar(&b.program, "orchestrator", "bin/orchestrator", "the `program` to measure")
	flag.StringVar(&b.database, "database", os.Getenv("HOLDFAST_TEST_DATABASE_URL"),
		"a PostgreSQL server whose user may create databases; an embedded one when empty (`url`)")
	flag.StringVar(&c.baseline, "baseline", "test/bench/baseline.json", "the `file` of the baseline")
	flag.BoolVar(&c.write, "write", false, "write a new baseline")
	flag.BoolVar(&c.strict, "strict", false, "fail when a figure is beyond its bound")
	flag.StringVar(&c.summary, "summary", os.Getenv("GITHUB_STEP_SUMMARY"), "append the report to this `file`, as Markdown")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "check: unexpected argument:", flag.Arg(0))
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c.commit = commit(ctx)
	err := c.run(func(scenario string) (report, error) { return b.measure(ctx, scenario) }, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// commit is that of the checkout, if there is one.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// check says what to do with a measurement.
type check struct {
	// baseline is the file of the baseline.
	baseline string
	// write replaces the baseline instead of comparing with it.
	write bool
	// strict makes a figure beyond its bound an error.
	strict bool
	// summary is a file to append the report to, as Markdown; empty for none.
	summary string
	// commit is what is measured.
	commit string
}

// errWorse says that figures are worse than the bounds allow.
var errWorse = errors.New("jobs cost more than the baseline and its bounds allow")

// run measures the guarded scenarios and prints how they compare.
func (c check) run(measure func(scenario string) (report, error), out io.Writer) error {
	var before baseline
	if !c.write { // before spending minutes on measuring
		var err error
		if before, err = readBaseline(c.baseline); err != nil {
			return err
		}
	}
	now := baseline{Commit: c.commit, Runs: guardedRuns, Jobs: guardedJobs}
	for i, scenario := range slices.Sorted(maps.Keys(guardedJobs)) {
		told, err := measure(scenario)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", scenario, err)
		}
		if i == 0 {
			now.Began, now.Machine = told.Began.UTC().Truncate(time.Second), told.Machine
		}
		if err := now.add(scenario, told); err != nil {
			return err
		}
	}
	if c.write {
		if err := now.writeTo(c.baseline); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s is written: %s\n", c.baseline, now.about())
		return err
	}
	compared, err := compare(before, now)
	if err != nil {
		return fmt.Errorf("%s: %w", c.baseline, err)
	}
	if err := compared.print(out); err != nil {
		return err
	}
	if c.summary != "" {
		if err := appendTo(c.summary, compared.markdown()); err != nil {
			return err
		}
	}
	if c.strict && compared.has(worse) {
		return errWorse
	}
	return nil
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}
