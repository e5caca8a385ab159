// Command soak runs a million jobs of all kinds through the real program, and judges whether
// what it uses stays the same.
//
//	make soak
//	make soak JOBS=50000
//	make soak JOBS=50000 LEAK=memory
//
// One orchestrator with two plugins works on a PostgreSQL server of its own, which commits
// durably. Clients submit in batches, repeat submissions, cancel, look up and list;
// a schedule has a tick each second. Most jobs succeed. Others fail once and are retried, fail until
// their attempts are spent, die at once, take too long, crash their process, wait for a
// concurrency key, or have large values. What has ended is deleted after a minute.
//
// The run has ten steps. During a step, the orchestrator's memory and the sizes of tables are
// measured each second, and their peaks count. After it, when no job is open, the rest is
// measured: goroutines, files, processes, connections, the memory of plugins and PostgreSQL. A
// figure has held if its maximum in the second half is not above that of the first half and an
// allowance. Sizes of tables and indexes are judged only if each half
// lasts long enough for jobs to be deleted. A run in which not all kinds of ends have
// occurred has done too little, and fails.
//
// The exit code is 0 if everything has held, 1 if not, and 2 if there is no result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// atMost bounds a run, whatever happens.
const atMost = 4 * time.Hour

// steps is how many rows the table has.
const steps = 10

var errNotHeld = errors.New("not everything has held")

type options struct {
	jobs     int
	rate     float64
	programs string
	leak     string
}

func main() {
	err := start(os.Args[1:])
	switch {
	case errors.Is(err, errNotHeld):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
}

func start(args []string) error {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.IntVar(&o.jobs, "jobs", 1_000_000, "how many jobs are submitted, besides those of the schedule")
	flags.Float64Var(&o.rate, "rate", 1500, "how many jobs a second are submitted at most")
	flags.StringVar(&o.programs, "programs", "bin/soak", "where orchestrator and handlers are, and where the log goes")
	flags.StringVar(&o.leak, "leak", "", "let the plugin leak memory or files, to see that the soak finds it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.jobs < steps*batchSize || o.rate < 1 || o.leak != "" && o.leak != "memory" && o.leak != "files" {
		return fmt.Errorf("bad arguments; at least %d jobs, see -help", steps*batchSize)
	}
	var err error
	if o.programs, err = filepath.Abs(o.programs); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	s, err := open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx), s.close())
}
