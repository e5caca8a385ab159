package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// mostRuns is how often a bug is tried, each time for three times as long.
const mostRuns = 3

// trial runs the product with bugs and without.
type trial struct {
	options
	// work is where everything is that is removed at the end, and checkout the copy there.
	work, checkout string
	// built has how each build went, in the order of the bugs.
	built chan error
}

// verdict is what the checker says about one invariant.
type verdict struct {
	Name       string
	Violations []struct{ Job, Says string }
}

// verdicts are those of a run.
type verdicts []verdict

// violated names the invariants that do not hold.
func (all verdicts) violated() string {
	var names []string
	for _, v := range all {
		if len(v.Violations) > 0 {
			names = append(names, v.Name)
		}
	}
	return strings.Join(names, " ")
}

// says counts the violations of the invariant that have these words.
func (all verdicts) says(invariant, words string) int {
	count := 0
	for _, v := range all {
		for _, one := range v.Violations {
			if v.Name == invariant && strings.Contains(one.Says, words) {
				count++
			}
		}
	}
	return count
}

// all tries the bugs, and names those that were not caught, and the faults with which the
// product without a bug did not hold.
func (t trial) all(ctx context.Context, all []bug) (wrong []string) {
	ctx, stop := context.WithCancel(ctx)
	var builds sync.WaitGroup
	builds.Go(func() { t.build(ctx, all) })
	defer builds.Wait()
	defer stop()
	for i, b := range all {
		if i == 0 || all[i-1].faults() != b.faults() {
			if err := t.withoutBug(ctx, b.flags, i); err != nil {
				fmt.Printf("WRONG   no bug: %v\n", err)
				wrong = append(wrong, "no bug, "+b.faults())
			}
		}
		if err := t.with(ctx, b); err != nil {
			fmt.Printf("MISSED  %s: %v\n", b.name, err)
			wrong = append(wrong, b.name)
		}
	}
	return wrong
}

// withoutBug fails unless the product as it is holds all invariants in a run with the faults
// that bugs are to be caught with: a checker that finds something there proves nothing.
func (t trial) withoutBug(ctx context.Context, flags []string, number int) (err error) {
	began := time.Now()
	dir := filepath.Join(t.work, fmt.Sprint("no-bug-", number))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs := filepath.Join(dir, "programs")
	if err := t.install(ctx, programs, "handlers", "orchestrator"); err != nil {
		return err
	}
	found, err := t.once(ctx, programs, t.record(dir, "no-bug", number), t.duration, t.seed, t.grace, flags)
	if err != nil {
		return err
	}
	for _, v := range found {
		for _, one := range v.Violations {
			err = errors.Join(err, fmt.Errorf("%s: %s %s", v.Name, one.Job, one.Says))
		}
	}
	if err == nil {
		fmt.Printf("holds   %-24s %s; %s\n", "no bug", strings.Join(flags, " "), time.Since(began).Round(time.Second))
	}
	return err
}

// with lets the runner run the product with the bug until it is caught, and fails if it is not.
func (t trial) with(ctx context.Context, b bug) (err error) {
	began := time.Now()
	dir := filepath.Join(t.work, b.name)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs := filepath.Join(dir, "programs")
	select {
	case err = <-t.built:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	grace := t.grace
	if b.grace > 0 {
		grace = b.grace
	}
	var found verdicts
	runs, count := 0, 0
	for duration := t.duration; runs < mostRuns && count == 0; duration *= 3 {
		seed := t.seed + uint64(runs) //nolint:gosec // a few
		if found, err = t.once(ctx, programs, t.record(dir, b.name, runs), duration, seed, grace, b.flags); err != nil {
			return err
		}
		count = found.says(b.by, b.says)
		runs++
	}
	took := time.Since(began).Round(time.Second)
	if count == 0 {
		return fmt.Errorf("%s does not say %q in %d runs; violated: %s; %s", b.by, b.says, runs, found.violated(), took)
	}
	fmt.Printf("caught  %-24s by %-3s, which says %q %d times; violated: %s; run %d, %s\n", b.name, b.by, b.says, count, found.violated(), runs, took)
	return nil
}

// build builds the product with each bug, one after the other, while those before are tried.
func (t trial) build(ctx context.Context, all []bug) {
	for _, b := range all {
		err := t.buildWith(ctx, b, filepath.Join(t.work, b.name, "programs"))
		select {
		case t.built <- err:
		case <-ctx.Done():
			return
		}
	}
}

// buildWith builds the product with the bug. Handlers are what the bug is not in.
func (t trial) buildWith(ctx context.Context, b bug, programs string) (err error) {
	if err := t.install(ctx, programs, "handlers"); err != nil {
		return err
	}
	if err := b.apply(ctx, t.checkout); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.apply(ctx, t.checkout, "--reverse")) }()
	return command(ctx, t.checkout, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", programs, "./cmd/orchestrator")
}

// install copies programs that have no bug. The runner starts no checker that is not there.
func (t trial) install(ctx context.Context, dir string, names ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return command(ctx, t.programs, "cp", append(names, dir)...)
}

// record is the directory of a run.
func (t trial) record(dir, name string, number int) string {
	if t.keep != "" {
		return filepath.Join(t.keep, fmt.Sprint(name, "-", number))
	}
	return filepath.Join(dir, fmt.Sprint("record-", number))
}

// once lets the runner run the product once, and the checker judge that.
func (t trial) once(ctx context.Context, programs, record string, duration time.Duration, seed uint64, grace time.Duration, faults []string) (verdicts, error) {
	flags := []string{
		"-programs", programs, "-dir", record, "-duration", duration.String(), "-grace", grace.String(),
		"-seed", fmt.Sprint(seed), "-pooler", "no", "-plain", "-short",
	}
	failed := command(ctx, t.root, filepath.Join(t.programs, "chaos"), slices.Concat(flags, faults)...)
	// The checker exits with 1 if there are violations.
	text, err := exec.CommandContext(ctx, filepath.Join(t.programs, "checker"), "-json", record).Output()
	var found verdicts
	if json.Unmarshal(text, &found) != nil || len(found) == 0 {
		return nil, fmt.Errorf("the record cannot be judged: %w", errors.Join(failed, err))
	}
	return found, ctx.Err()
}
