// Bugs tests the chaos run and its checker: it puts one bug after another into a copy
// of the product, lets the runner do its worst to it for a while, and expects that the
// checker reports a violation of the invariant that is meant for it.
//
//	make chaos-controls
//
// Each bug is a patch in this folder. A test says so when one does not apply any more.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	root, programs, only string
	keep                 string
	duration, grace      time.Duration
	seed                 uint64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.root, "root", ".", "the checkout")
	flag.StringVar(&o.programs, "programs", "bin/chaos", "where the runner, its handlers and the checker are")
	flag.StringVar(&o.only, "only", "", "only these bugs, separated by commas")
	flag.StringVar(&o.keep, "keep", "", "where to keep the records; by default they are removed")
	flag.DurationVar(&o.duration, "duration", 12*time.Second, "how long faults are injected for each bug at first; three times as long if it is not caught, and so on")
	flag.DurationVar(&o.grace, "grace", 6*time.Second, "how long nothing may move until the run gives up on jobs that are open")
	flag.Uint64Var(&o.seed, "seed", 1, "as of the runner")
	flag.Parse()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bugs:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func (o options) run(ctx context.Context) (err error) {
	all, err := bugs(filepath.Join(o.root, "test/chaos/bugs"))
	if err != nil {
		return err
	}
	if o.programs, err = filepath.Abs(o.programs); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "holdfast-bugs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	checkout := filepath.Join(work, "checkout")
	if err := o.copyTo(ctx, checkout); err != nil {
		return err
	}
	tried, missed := 0, []string(nil)
	for _, b := range all {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), b.name) {
			continue
		}
		tried++
		began := time.Now()
		violated, runs, err := o.try(ctx, b, checkout, filepath.Join(work, b.name))
		if err != nil {
			return err
		}
		verdict := "caught"
		if !slices.Contains(violated, b.by) {
			verdict = "MISSED"
			missed = append(missed, b.name)
		}
		fmt.Printf("%s  %-24s by %-4s violated: %-24s run %d, %s\n", verdict, b.name, b.by, strings.Join(violated, " "), runs, time.Since(began).Round(time.Second))
	}
	fmt.Printf("%d of %d bugs caught\n", tried-len(missed), tried)
	if len(missed) > 0 || tried == 0 {
		return fmt.Errorf("not caught: %s", strings.Join(missed, ", "))
	}
	return nil
}

// copyTo copies what belongs to the checkout.
func (o options) copyTo(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	copying := `git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read | tar --extract --directory "$0"`
	return command(ctx, o.root, "bash", "-c", copying, dir)
}

// mostRuns is how often a bug is tried, each time for three times as long.
const mostRuns = 3

// try lets the runner run the product with the bug until it is caught, and returns the
// invariants that are violated in the end.
func (o options) try(ctx context.Context, b bug, checkout, dir string) (violated []string, runs int, err error) {
	if err := b.apply(ctx, checkout); err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, b.apply(ctx, checkout, "--reverse"), os.RemoveAll(dir)) }()
	programs := filepath.Join(dir, "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return nil, 0, err
	}
	// Handlers are what the bug is not in; the runner starts no checker that is not there.
	if err := command(ctx, o.programs, "cp", "handlers", programs); err != nil {
		return nil, 0, err
	}
	if err := command(ctx, checkout, "go", "build", "-trimpath", "-o", programs, "./cmd/orchestrator"); err != nil {
		return nil, 0, err
	}
	for duration := o.duration; runs < mostRuns && !slices.Contains(violated, b.by); duration *= 3 {
		record := filepath.Join(dir, fmt.Sprint("record-", runs))
		if o.keep != "" {
			record = filepath.Join(o.keep, fmt.Sprint(b.name, "-", runs))
		}
		if violated, err = o.once(ctx, b, programs, record, duration, o.seed+uint64(runs)); err != nil { //nolint:gosec // a few
			return nil, runs, err
		}
		runs++
	}
	return violated, runs, nil
}

// once lets the runner run it once.
func (o options) once(ctx context.Context, b bug, programs, record string, duration time.Duration, seed uint64) (violated []string, err error) {
	flags := []string{
		"-programs", programs, "-dir", record, "-duration", duration.String(), "-grace", o.grace.String(),
		"-seed", fmt.Sprint(seed), "-pooler", "no", "-plain", "-short",
	}
	runner := command(ctx, o.root, filepath.Join(o.programs, "chaos"), append(flags, b.flags...)...)
	// The checker exits with 1, as it should.
	cmd := exec.CommandContext(ctx, filepath.Join(o.programs, "checker"), "-json", record)
	text, err := cmd.Output()
	var verdicts []struct {
		Name  string
		Count int
	}
	if json.Unmarshal(text, &verdicts) != nil {
		return nil, fmt.Errorf("%s: the record cannot be judged: %w", b.name, errors.Join(runner, err))
	}
	for _, v := range verdicts {
		if v.Count > 0 {
			violated = append(violated, v.Name)
		}
	}
	return violated, nil
}

func command(ctx context.Context, dir, name string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = dir
	// The runner must end what it has started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, output)
	}
	return nil
}
