// Bugs tests the chaos run and its checker: it puts one bug after another into a copy
// of the product, lets the runner do its worst to it for a while, and expects that the
// checker reports a violation of the invariant that is meant for it, in the words that are
// meant for it. Before the first bug of each set of faults, the product without any bug must
// hold all invariants in the same run.
//
//	make chaos-controls
//
// Each bug is a patch in this folder. A test says so when one does not apply any more.
package main

import (
	"context"
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
	flag.StringVar(&o.programs, "programs", "bin/chaos", "where the orchestrator, the runner, its handlers and the checker are")
	flag.StringVar(&o.only, "only", "", "only these bugs, separated by commas")
	flag.StringVar(&o.keep, "keep", "", "where to keep the records; by default they are removed")
	flag.DurationVar(&o.duration, "duration", 12*time.Second, "how long faults are injected for each bug at first; three times as long if it is not caught, and so on")
	flag.DurationVar(&o.grace, "grace", 3*time.Minute, "how long nothing may move until the run gives up on jobs that are open, unless the bug strands jobs")
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
	if o.only != "" {
		only := strings.Split(o.only, ",")
		all = slices.DeleteFunc(all, func(b bug) bool { return !slices.Contains(only, b.name) })
	}
	if len(all) == 0 {
		return errors.New("there are no such bugs")
	}
	if o.programs, err = filepath.Abs(o.programs); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "holdfast-bugs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	t := trial{options: o, work: work, checkout: filepath.Join(work, "checkout"), built: make(chan error, 1)}
	if err := o.copyTo(ctx, t.checkout); err != nil {
		return err
	}
	began := time.Now()
	// Those with the same faults follow each other, and the product without a bug comes first.
	slices.SortStableFunc(all, func(a, b bug) int { return strings.Compare(a.faults(), b.faults()) })
	wrong := t.all(ctx, all)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("%d bugs and the product without them, in %s: %d wrong\n", len(all), time.Since(began).Round(time.Second), len(wrong))
	if len(wrong) > 0 {
		return fmt.Errorf("wrong: %s", strings.Join(wrong, "; "))
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
