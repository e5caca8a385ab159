// Command against compares what a job costs in two builds of the orchestrator, by turns of about
// a second. A machine's speed drifts by more than what a change costs, but little from one second
// to the next. A control, which is the older build once more, shows how much of a difference is
// chance. See make bench-against.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/holdfast-jobs/holdfast/store/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := comparison{loads: loads}
	flag.StringVar(&c.before, "before", "", "directory of the older build: orchestrator and echo")
	flag.StringVar(&c.after, "after", "bin", "directory of the newer build")
	flag.IntVar(&c.rounds, "rounds", 60, "how many turns each build has at each load")
	flag.DurationVar(&c.turn, "turn", time.Second, "how long a turn takes")
	only := flag.String("only", "", "the one load to compare; empty for all")
	flag.Parse()
	if *only != "" {
		c.loads = slices.DeleteFunc(slices.Clone(loads), func(l load) bool { return l.name != *only })
	}
	if c.before == "" || c.rounds < 1 || len(c.loads) == 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := c.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "against:", err)
		os.Exit(1)
	}
}

// comparison says what to compare, and for how long.
type comparison struct {
	before, after string
	rounds        int
	turn          time.Duration
	loads         []load
}

func (c comparison) run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-against-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(dir, "postgres")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()

	var builds []*build
	defer func() {
		for _, b := range builds {
			err = errors.Join(err, b.stop())
		}
	}()
	for _, of := range []struct{ name, bin string }{{"before", c.before}, {"control", c.before}, {"after", c.after}} {
		b, err := start(ctx, of.name, of.bin, filepath.Join(dir, of.name), server.URL())
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		builds = append(builds, b)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "load\tbuild\tjobs\torchestrator µs\tPostgreSQL µs\ttogether\tWAL bytes\tCPU ratio\t95 %")
	for _, l := range c.loads {
		turns, err := c.measure(ctx, l, builds)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		for _, b := range builds {
			total, ratios := summarize(turns[b], turns[builds[0]])
			fmt.Fprintf(table, "%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t%.1f\t%.3f\t%.3f to %.3f\n", l.name, b.name, total.jobs, total.orchestrator(), total.postgres(),
				total.perJob(), total.walPerJob(), ratios.median, ratios.low, ratios.high)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// measure gives every build a turn in each round, in another order each time. The first round
// warms up, and does not count.
func (c comparison) measure(ctx context.Context, l load, builds []*build) (map[*build][]usage, error) {
	turns := make(map[*build][]usage)
	for round := range c.rounds + 1 {
		for _, i := range rand.Perm(len(builds)) {
			b := builds[i]
			before, err := b.used(ctx)
			if err != nil {
				return nil, err
			}
			jobs, err := l.run(ctx, b, c.turn)
			if err != nil {
				return nil, err
			}
			after, err := b.used(ctx)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				turns[b] = append(turns[b], after.since(before, jobs))
			}
		}
	}
	return turns, nil
}
