//go:build linux

// Command chaos runs the real program through faults, and records everything for a
// checker that shares no code with the product.
//
//	make chaos DURATION=3m SEED=7
//	make chaos-aimed FAILOVERS=20
//
// Some kinds of faults are injected first, one at a time, because a run proves nothing
// without them: see faults.Needed. The others follow in a random order, some at once. A
// run that has not done enough when its time is over goes on, for up to three times as
// long. More jobs are submitted only while not too many are open, so a slow machine has
// less to do.
//
// A run has two workers on one host, a third on another (a PID namespace of its own),
// and an API alone. Their database is a primary with a synchronous standby, and in a third
// of the runs PgBouncer is between. Plugins in Go, Python and Node.js have handlers that
// are good, slow, crashing and hostile. Clients submit, cancel, requeue and look up
// jobs, and record each call with what they know of its outcome. Meanwhile the
// schedule injects faults and heals them, in an order that the seed decides. Their
// moments depend on the machine, so a seed makes a run similar, not the same.
//
// When the time is over, everything is healed, and the run waits until no job is open, as
// long as something moves. Then it writes what is left: rows, processes, figures, and
// what the product's doctor says. At last it starts the checker.
//
//	this command ─▶ faults ─▶ census ─▶ stage ─▶ test/rig      handlers ─▶ plugin
//	      │           └─────▶ database ─▶ test/pgproxy, store/embedded
//	      └─▶ load, witness                                    all ─▶ history
//
// Package history describes the directory of a run. The runner, and everything that it
// has started, ends with Ctrl-C; what was recorded stays.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/faults"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == stage.GuestCommand {
		os.Exit(stage.BeGuest(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// parse reads the command line.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 3*time.Minute, "how long faults are injected, at most 2h")
	flags.DurationVar(&o.grace, "grace", 3*time.Minute, "how long nothing may move until the run gives up on jobs that are open")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "decides the order of faults and what clients do") //nolint:gosec // any number
	flags.StringVar(&o.dir, "dir", "", "the directory of the run; by default below bin/chaos/runs")
	flags.StringVar(&o.commit, "commit", "", "the version that is tested, for the record")
	flags.StringVar(&o.programs, "programs", "bin/chaos", "where orchestrator, handlers and checker are")
	flags.Float64Var(&o.rate, "rate", 80, "acts of all clients in a second")
	flags.IntVar(&o.clients, "clients", 32, "how many clients there are")
	flags.IntVar(&o.aimed, "aimed", 0, "only so many failovers of each aimed kind, instead of a duration")
	flags.StringVar(&o.pooler, "pooler", "auto", "whether PgBouncer is used: auto is in a third of the runs, by the seed; yes or no")
	flags.BoolVar(&o.strict, "strict", false, "let the checker judge speeds, too: needs an idle machine")
	flags.BoolVar(&o.short, "short", false, "expect little of the run, and submit no jobs that take long to end")
	flags.BoolVar(&o.alone, "alone", false, "inject only what every run needs, one fault at a time: how long it takes to recover is measured then")
	flags.BoolVar(&o.plain, "plain", false, "do without plugins in Python and Node.js")
	flags.BoolVar(&o.skip, "skip", false, "do nothing, and say why, if this machine cannot have hosts of their own")
	flags.StringVar(&o.only, "only", "", "inject faults of these kinds only, separated by commas")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if err := o.check(flags.Args()); err != nil {
		return o, err
	}
	o.chosen = o.dir != ""
	if !o.chosen {
		o.dir = filepath.Join(o.programs, "runs", fmt.Sprintf("%s-%d", time.Now().UTC().Format("20060102-150405"), o.seed))
	}
	for _, path := range []*string{&o.dir, &o.programs} {
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	return o, nil
}

// mostTime bounds the time in which faults are injected.
const mostTime = 2 * time.Hour

// check says what is wrong with the command line.
func (o options) check(arguments []string) error {
	known := make(map[string]bool)
	for _, kind := range faults.Kinds() {
		known[kind.Name] = true
	}
	for _, name := range strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' }) {
		if !known[name] {
			return fmt.Errorf("-only: there is no kind of fault %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%q is too much: there are only flags", arguments[0])
	case o.duration <= 0 || o.duration > mostTime:
		return fmt.Errorf("-duration must be more than 0 and at most %s, not %s", mostTime, o.duration)
	case o.grace <= 0:
		return fmt.Errorf("-grace must be more than 0, not %s", o.grace)
	case o.aimed < 0 || o.aimed > 1000:
		return fmt.Errorf("-aimed must be from 0 to 1000, not %d", o.aimed)
	case o.clients < 1:
		return fmt.Errorf("-clients must be at least 1, not %d", o.clients)
	case o.rate <= 0:
		return fmt.Errorf("-rate must be more than 0, not %g", o.rate)
	case !slices.Contains([]string{"auto", "yes", "no"}, o.pooler):
		return fmt.Errorf("-pooler must be auto, yes or no, not %q", o.pooler)
	}
	return nil
}

// start runs what was asked for. The directory of a good run is removed, unless it was chosen.
func start(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.skip {
		if refused := stage.MayIsolate(ctx); refused != nil {
			fmt.Println("Skipped: this machine does not permit", refused)
			return nil
		}
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(o.dir, "log"))
	if err != nil {
		return err
	}
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug}))
	fmt.Printf("seed %d, directory %s\n", o.seed, o.dir)
	r := &run{options: o, log: log}
	err = r.do(ctx)
	switch {
	case err != nil:
		log.Error("the run failed", "error", err)
		tellEnd(file.Name(), o.seed)
	case !o.chosen:
		return os.RemoveAll(o.dir)
	}
	return err
}
