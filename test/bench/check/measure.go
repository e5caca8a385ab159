package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measurement is what was measured in one session: the baseline, and what is
// compared with it.
type measurement struct {
	Began   time.Time      `json:"began"`
	Commit  string         `json:"commit"`
	Machine machine        `json:"machine"`
	Runs    int            `json:"runs"`
	Jobs    map[string]int `json:"jobs"`
	Figures []figure       `json:"figures"`
}

// machine says on what, as the orchestrator does.
type machine struct {
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu,omitempty"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
}

type figure struct {
	Scenario string  `json:"scenario"`
	Case     string  `json:"case"`
	Figure   string  `json:"figure"`
	Unit     string  `json:"unit"`
	Median   float64 `json:"median"`
}

func (m measurement) find(g guard) *figure {
	at := slices.IndexFunc(m.Figures, func(f figure) bool {
		return f.Scenario == g.scenario && f.Case == g.caseName && f.Figure == g.figure
	})
	if at < 0 {
		return nil
	}
	return &m.Figures[at]
}

// about says of when and what it is, in a line.
func (m measurement) about() string {
	return fmt.Sprintf("%s, commit %s, %d × %s, PostgreSQL %s, %s",
		m.Began.Format("2 January 2006"), m.Commit, m.Machine.CPUs, m.Machine.CPU, m.Machine.PostgreSQL, m.Machine.Go)
}

// report is what orchestrator bench --json prints, as far as it matters here.
type report struct {
	Machine   machine
	Began     time.Time
	Scenarios []struct {
		Name  string
		Cases []struct {
			Name    string
			Figures []struct {
				Name, Unit string
				Median     float64
			}
		}
	}
}

// measure lets the orchestrator measure what is guarded.
func measure(ctx context.Context, cfg config, notes io.Writer) (measurement, error) {
	m := measurement{Commit: commit(ctx), Runs: runs, Jobs: jobs}
	for i, scenario := range slices.Sorted(maps.Keys(jobs)) {
		r, err := bench(ctx, cfg, scenario, notes)
		if err != nil {
			return m, fmt.Errorf("measuring %s: %w", scenario, err)
		}
		if i == 0 {
			m.Began, m.Machine = r.Began.UTC().Truncate(time.Second), r.Machine
		}
		if err := m.add(scenario, r); err != nil {
			return m, err
		}
	}
	return m, nil
}

func bench(ctx context.Context, cfg config, scenario string, notes io.Writer) (r report, err error) {
	args := []string{
		"bench", scenario, "--json",
		"--jobs", strconv.Itoa(jobs[scenario]), "--runs", strconv.Itoa(runs), "--warm-ups", strconv.Itoa(warmUps),
	}
	if cfg.database != "" {
		args = append(args, "--database", cfg.database)
	}
	command := exec.CommandContext(ctx, cfg.orchestrator, args...)
	command.Stderr = notes
	// It has processes and databases to tidy away.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	output, err := command.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(output, &r)
}

// add takes over what is guarded of a scenario.
func (m *measurement) add(scenario string, from report) error {
	var told []figure
	for _, s := range from.Scenarios {
		for _, c := range s.Cases {
			for _, f := range c.Figures {
				told = append(told, figure{s.Name, c.Name, f.Name, f.Unit, math.Round(f.Median*100) / 100})
			}
		}
	}
	for _, g := range guards() {
		if g.scenario != scenario {
			continue
		}
		f := measurement{Figures: told}.find(g)
		switch {
		case f != nil:
			m.Figures = append(m.Figures, *f)
		case !g.optional():
			return fmt.Errorf("%s, %s: the bench does not tell %q", g.scenario, g.caseName, g.figure)
		}
	}
	return nil
}

// commit is that of the checkout, where there is one.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
