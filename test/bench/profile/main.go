// Command profile shows where the processor time and the memory of a job go: in the
// orchestrator and the handlers by part of the code, in PostgreSQL by statement. It runs the
// bench's scenario workoff with profiles, on a PostgreSQL server of its own, and writes a page.
// See make bench-profile.
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

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var m measurement
	flag.StringVar(&m.program, "orchestrator", "bin/orchestrator", "the `program` to measure")
	flag.IntVar(&m.runs, "runs", 5, "how often to work off a backlog, after once to warm up")
	flag.IntVar(&m.jobs, "jobs", 200_000, "how many jobs a backlog has")
	page := flag.String("page", "", "also write the page to this `file`")
	flag.Parse()
	if flag.NArg() > 0 || m.runs < 1 || m.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	costs, err := m.take(ctx)
	if err == nil {
		text := costs.page()
		_, err = os.Stdout.Write(text)
		if *page != "" {
			err = errors.Join(err, os.WriteFile(*page, text, 0o644))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

// measurement says what to measure.
type measurement struct {
	program    string
	runs, jobs int
}

// costs are what a job costs.
type costs struct {
	measurement
	report     report
	processes  map[string]parts // by the name of the process
	statements []statement
}

// report is the output of orchestrator bench --json, as far as it is needed here.
type report struct {
	Machine struct {
		CPUs                        int
		CPU, System, Go, PostgreSQL string
	} `json:"machine"`
	Began     time.Time `json:"began"`
	Scenarios []struct {
		Cases []struct {
			Figures []struct {
				Name   string  `json:"name"`
				Median float64 `json:"median"`
			} `json:"figures"`
		} `json:"cases"`
	} `json:"scenarios"`
}

// figure is the median of a figure over the runs.
func (r report) figure(name string) float64 {
	for _, s := range r.Scenarios {
		for _, c := range s.Cases {
			for _, f := range c.Figures {
				if f.Name == name {
					return f.Median
				}
			}
		}
	}
	return 0
}

func (m measurement) take(ctx context.Context) (c costs, err error) {
	dir, err := os.MkdirTemp("", "holdfast-profile-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(dir, "postgres"), Settings: map[string]string{
		"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "top",
	}})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return c, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "create extension pg_stat_statements"); err != nil {
		return c, err
	}
	c = costs{measurement: m, processes: make(map[string]parts)}
	if c.report, err = m.bench(ctx, server.URL(), dir); err != nil {
		return c, err
	}
	for process, rules := range processes {
		if c.processes[process], err = read(dir, process, rules, m.runs*m.jobs); err != nil {
			return c, err
		}
	}
	c.statements, err = statements(ctx, conn, (m.runs+1)*m.jobs)
	return c, err
}

// bench runs orchestrator bench, which leaves its profiles in the directory.
func (m measurement) bench(ctx context.Context, url, dir string) (told report, err error) {
	command := exec.CommandContext(ctx, m.program, "bench", "workoff", "--json", "--database", url,
		"--runs", strconv.Itoa(m.runs), "--warm-ups", "1", "--jobs", strconv.Itoa(m.jobs), "--cpuprofile", dir, "--memprofile", dir)
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
