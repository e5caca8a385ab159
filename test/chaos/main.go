//go:build linux

// Command chaos runs the real program through faults, and records everything for a
// checker that shares no code with the product.
//
//	make chaos DURATION=3m SEED=7
//	make chaos-aimed FAILOVERS=20
//
// A run has two workers on one host, a third on another (a PID namespace of its own),
// and an API alone. Their database is a primary with a synchronous standby, and in a third
// of the runs PgBouncer is between. Plugins in Go, Python and Node.js have handlers that
// are good, slow, crashing and hostile. Clients submit, cancel, requeue and look up
// jobs, and record each call with what they know of its outcome. Meanwhile the
// schedule injects faults and heals them, in an order that the seed decides. Their
// moments depend on the machine, so a seed makes a run similar, not the same.
//
// When the time is over, everything is healed, and the run waits until no job is open, at
// most for the grace period. Then it writes what is left: rows, processes, figures, and
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
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

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

func start(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 3*time.Minute, "how long faults are injected, at most 2h")
	flags.DurationVar(&o.grace, "grace", 3*time.Minute, "how long everything may take to end once all is healed")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "decides the order of faults and what clients do") //nolint:gosec // any number
	flags.StringVar(&o.dir, "dir", "", "the directory of the run; by default below bin/chaos/runs")
	flags.StringVar(&o.programs, "programs", "bin/chaos", "where orchestrator, handlers and checker are")
	flags.Float64Var(&o.rate, "rate", 80, "acts of all clients in a second")
	flags.IntVar(&o.clients, "clients", 32, "how many clients there are")
	flags.IntVar(&o.aimed, "aimed", 0, "only so many failovers of each aimed kind, instead of a duration")
	flags.StringVar(&o.pooler, "pooler", "auto", "whether PgBouncer is used: auto is in a third of the runs, by the seed; yes or no")
	flags.BoolVar(&o.strict, "strict", false, "let the checker judge speeds, too: needs an idle machine")
	flags.BoolVar(&o.short, "short", false, "expect little of the run")
	flags.StringVar(&o.only, "only", "", "inject faults of these kinds only, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.duration > 2*time.Hour || o.aimed > 1000 || o.clients < 1 || o.rate <= 0 {
		return errors.New("bad arguments; see -help")
	}
	if o.dir == "" {
		o.dir = filepath.Join(o.programs, "runs", fmt.Sprintf("%s-%d", time.Now().UTC().Format("20060102-150405"), o.seed))
	}
	for _, path := range []*string{&o.dir, &o.programs} {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
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
	if err != nil {
		log.Error("the run failed", "error", err)
	}
	return err
}
