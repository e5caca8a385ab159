package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config says what to measure, and where.
type config struct {
	// orchestrator is Holdfast's program.
	orchestrator string
	// database is a server whose user may create databases; when empty, one is
	// started in dataDir.
	database, dataDir string
	// nodeDir contains the drivers for Node.js, and the packages that npm has installed
	// for them.
	nodeDir string
	// rounds are measured; the warmUps before them are not.
	rounds, warmUps int
	// sweeps is how often each setting is tried to find the best; 0 for the settings that
	// are known to be good.
	sweeps int
	// within limits the whole measurement: rounds that would take longer are left out.
	within time.Duration
	// jobs is the number of jobs in the largest scenario.
	jobs int
	// only lists the scenarios to measure; pinned adds the scenario of that name.
	only   []string
	pinned bool
	// without lists the systems to leave out; "node" means those that need Node.js.
	without []string
	// json and page are files to write, when not empty.
	json, page string
	// command repeats the measurement.
	command string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "peers:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out, notes io.Writer) error {
	if len(arguments) == 2 && arguments[0] == riverArgument {
		return driveRiver(ctx, arguments[1], os.Stdin, out)
	}
	cfg, err := parse(arguments, notes)
	if err != nil {
		return err
	}
	results, err := measure(ctx, cfg, notes)
	if err != nil {
		return err
	}
	results.Command = cfg.command
	if cfg.json != "" {
		text, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(cfg.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if cfg.page == "" {
		_, err = out.Write(results.page())
		return err
	}
	return os.WriteFile(cfg.page, results.page(), 0o644)
}

func parse(arguments []string, notes io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(notes)
	var only, without string
	flags.StringVar(&cfg.orchestrator, "orchestrator", "bin/orchestrator", "Holdfast's `program`")
	flags.StringVar(&cfg.database, "database", "", "the `url` of a PostgreSQL server whose user may create databases; an embedded server when empty")
	flags.StringVar(&cfg.dataDir, "data-dir", "data/peers", "where the embedded PostgreSQL keeps its data")
	flags.StringVar(&cfg.nodeDir, "node-dir", "test/peers/node", "where the drivers for Node.js are, with their packages installed by npm")
	flags.IntVar(&cfg.rounds, "rounds", 5, "how often each system is measured")
	flags.IntVar(&cfg.warmUps, "warm-ups", 1, "rounds before the measured ones")
	flags.IntVar(&cfg.sweeps, "sweep", 2, "how often every setting of a system is tried before the rounds, to find its best; 0 not to sweep")
	flags.DurationVar(&cfg.within, "within", 40*time.Minute, "leave out rounds that would take longer than this")
	flags.IntVar(&cfg.jobs, "jobs", 100_000, "jobs in the largest scenario")
	flags.StringVar(&only, "only", "", "`scenarios` to measure, separated by commas (all but pinned)")
	flags.BoolVar(&cfg.pinned, "pinned", false, "also measure pinned, which may take a minute for each system and round")
	flags.StringVar(&without, "without", "", "`systems` to leave out, separated by commas; node for those that need Node.js")
	flags.StringVar(&cfg.json, "json", "", "a `file` for the values of every round")
	flags.StringVar(&cfg.page, "page", "", "a `file` for the page of the documentation; standard output when empty")
	if err := flags.Parse(arguments); err != nil {
		return cfg, err
	}
	if cfg.rounds < 1 || cfg.warmUps < 0 || cfg.sweeps < 0 || cfg.jobs < 1 || flags.NArg() > 0 {
		return cfg, errors.New("-rounds and -jobs must be at least 1, -warm-ups and -sweep at least 0, and there are no arguments")
	}
	cfg.command = "make bench-peers"
	var kept []string
	flags.Visit(func(f *flag.Flag) {
		// The other flags depend on the machine.
		if slices.Contains([]string{"rounds", "warm-ups", "sweep", "within", "jobs", "only", "pinned", "without"}, f.Name) {
			kept = append(kept, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	if len(kept) > 0 {
		cfg.command += fmt.Sprintf(" PEERS='%s'", strings.Join(kept, " "))
	}
	cfg.only, cfg.without = list(only), list(without)
	for _, name := range cfg.only {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			return cfg, fmt.Errorf("there is no scenario %q", name)
		}
	}
	return cfg, nil
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// chosen are the scenarios to measure.
func (c config) chosen() (chosen []scenario) {
	for _, s := range scenarios {
		if slices.Contains(c.only, s.name) || len(c.only) == 0 && (!s.pinned || c.pinned) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}
