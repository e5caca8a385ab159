// Command tracing shows what tracing costs: it runs scenarios of orchestrator bench without a
// collector, and with one that takes every span, in turns, and writes a page. See make
// bench-tracing.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/store/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var m measurement
	flag.StringVar(&m.program, "orchestrator", "bin/orchestrator", "the `program` to measure")
	flag.IntVar(&m.rounds, "rounds", 5, "how often each is measured, after once to warm up")
	flag.IntVar(&m.jobs, "jobs", 100_000, "how many jobs a scenario has")
	flag.StringVar(&m.profiles, "cpuprofile", "", "where to write profiles of processor time for pprof (`directory`)")
	page := flag.String("page", "", "also write the page to this `file`")
	flag.Parse()
	if flag.NArg() > 0 || m.rounds < 1 || m.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	err := m.take(ctx)
	if err == nil {
		text := m.page()
		_, err = os.Stdout.Write(text)
		if *page != "" {
			err = errors.Join(err, os.WriteFile(*page, text, 0o644))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

// measurement is what to measure, and what came of it.
type measurement struct {
	program      string
	profiles     string
	rounds, jobs int

	report report // the last one
	taken  []taken
}

// taken is a figure of a round.
type taken struct {
	round int
	mode  string
	// of is the scenario and its case.
	of     string
	figure string
	value  float64
}

// mode is how an orchestrator traces.
type mode struct {
	name string
	// ratio is tracing.sample_ratio; empty for no collector.
	ratio string
}

// off comes first: the others are compared with it.
var modes = []mode{{"off", ""}, {"0.01", "0.01"}, {"1", "1"}}

// scenarios are those of the bench, with the share of the jobs that each gets. e2e has three
// phases.
var scenarios = []struct {
	name  string
	share int
}{{"workoff", 1}, {"e2e", 3}}

// report is the output of orchestrator bench --json, as far as it is needed here.
type report struct {
	Machine struct {
		CPUs                        int
		CPU, System, Go, PostgreSQL string
	} `json:"machine"`
	Began     time.Time `json:"began"`
	Scenarios []struct {
		Name  string `json:"name"`
		Cases []struct {
			Name    string `json:"name"`
			Figures []struct {
				Name   string  `json:"name"`
				Median float64 `json:"median"`
			} `json:"figures"`
		} `json:"cases"`
	} `json:"scenarios"`
}

func (m *measurement) take(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-tracing-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(dir, "postgres")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	taker, err := startTaker(ctx)
	if err != nil {
		return err
	}
	defer taker.stop()
	for round := range m.rounds + 1 {
		for _, scenario := range scenarios {
			for i := range modes {
				by := modes[(i+round)%len(modes)] // so that none is always the first
				before := taker.spans.Load()
				told, err := m.bench(ctx, server.URL(), taker.endpoint, scenario.name, m.jobs/scenario.share, by, round)
				if err != nil {
					return fmt.Errorf("%s, tracing %s: %w", scenario.name, by.name, err)
				}
				m.report = told
				fmt.Fprintf(os.Stderr, "round %d, %s, tracing %s: %d spans\n", round, scenario.name, by.name, taker.spans.Load()-before)
				if round > 0 {
					m.add(round, by, told)
				}
			}
		}
	}
	return nil
}

func (m *measurement) add(round int, by mode, told report) {
	for _, s := range told.Scenarios {
		for _, c := range s.Cases {
			for _, f := range c.Figures {
				m.taken = append(m.taken, taken{round: round, mode: by.name, of: s.Name + ": " + c.Name, figure: f.Name, value: f.Median})
			}
		}
	}
}

// bench runs a scenario of orchestrator bench once.
func (m *measurement) bench(ctx context.Context, url, endpoint, scenario string, jobs int, by mode, round int) (told report, err error) {
	arguments := []string{
		"bench", scenario, "--json", "--database", url, "--runs", "1", "--warm-ups", "0", "--jobs", strconv.Itoa(jobs),
	}
	if by.ratio != "" {
		arguments = append(arguments, "--set", "tracing.endpoint="+endpoint, "--set", "tracing.sample_ratio="+by.ratio)
	}
	if m.profiles != "" {
		arguments = append(arguments, "--cpuprofile", filepath.Join(m.profiles, fmt.Sprintf("%s-%d", by.name, round)))
	}
	command := exec.CommandContext(ctx, m.program, arguments...)
	// SIGTERM lets it stop its orchestrator and drop its database. The ^C of a terminal
	// would be its second signal, which ends it at once, so it gets a group of its own.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		return told, err
	}
	return told, json.Unmarshal(out.Bytes(), &told)
}
