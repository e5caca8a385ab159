package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// guardedJobs is the number of jobs in a run of each guarded scenario: enough for
// the kernel to count their processor time in hundredths of a second, few enough
// to take two minutes in all.
var guardedJobs = map[string]int{"workoff": 50_000, "submit": 16_000}

const (
	guardedRuns    = 5
	guardedWarmUps = 1
	// cpu is the one figure that some systems do not know: it needs /proc.
	cpu = "CPU"
)

// bounds say by how much a figure may exceed the baseline. CPU depends on the
// machine and on what else runs there; WAL and allocations depend only on how many
// jobs happen to share a batch.
var bounds = []struct {
	figure string
	bound  float64
}{
	{cpu, 0.5},
	{"WAL", 0.1},
	{"allocations, orchestrator", 0.15},
	{"allocated, orchestrator", 0.15},
	{"allocations, handlers", 0.15},
	{"allocated, handlers", 0.15},
}

// guard is a figure that must stay within a bound of the baseline.
type guard struct {
	scenario, caseName, figure string
	bound                      float64
}

func (g guard) optional() bool { return g.figure == cpu }

// guards returns all guards, in the order of the report.
func guards() (all []guard) {
	backlog := "backlog of " + strconv.Itoa(guardedJobs["workoff"])
	for _, of := range []struct{ scenario, caseName string }{
		{"workoff", backlog}, {"submit", "64 clients"}, {"submit", "4 clients, 500 a batch"},
	} {
		for _, b := range bounds {
			// Nobody works off the jobs of submit, so handlers are idle.
			idle := []string{"allocations, handlers", "allocated, handlers"}
			if of.scenario == "workoff" || !slices.Contains(idle, b.figure) {
				all = append(all, guard{of.scenario, of.caseName, b.figure, b.bound})
			}
		}
	}
	return all
}

// baseline is what jobs cost in one session.
type baseline struct {
	Began   time.Time       `json:"began"`
	Commit  string          `json:"commit"`
	Machine machine         `json:"machine"`
	Runs    int             `json:"runs"`
	Jobs    map[string]int  `json:"jobs"`
	Figures []guardedFigure `json:"figures"`
}

type guardedFigure struct {
	Scenario string  `json:"scenario"`
	Case     string  `json:"case"`
	Figure   string  `json:"figure"`
	Unit     string  `json:"unit"`
	Median   float64 `json:"median"`
}

func (b baseline) find(g guard) *guardedFigure {
	at := slices.IndexFunc(b.Figures, func(f guardedFigure) bool {
		return f.Scenario == g.scenario && f.Case == g.caseName && f.Figure == g.figure
	})
	if at < 0 {
		return nil
	}
	return &b.Figures[at]
}

// about describes the session in one line.
func (b baseline) about() string {
	return fmt.Sprintf("%s, commit %s, %d × %s, PostgreSQL %s, %s",
		b.Began.Format("2 January 2006"), b.Commit, b.Machine.CPUs, b.Machine.CPU, b.Machine.PostgreSQL, b.Machine.Go)
}

// add takes the guarded figures of a scenario from a report.
func (b *baseline) add(scenario string, from report) error {
	var all []guardedFigure
	for _, s := range from.Scenarios {
		for _, c := range s.Cases {
			for _, f := range c.Figures {
				all = append(all, guardedFigure{s.Name, c.Name, f.Name, f.Unit, math.Round(f.Median*100) / 100})
			}
		}
	}
	for _, g := range guards() {
		if g.scenario != scenario {
			continue
		}
		f := baseline{Figures: all}.find(g)
		switch {
		case f != nil:
			b.Figures = append(b.Figures, *f)
		case !g.optional():
			return fmt.Errorf("%s, %s: the bench does not report %q", g.scenario, g.caseName, g.figure)
		}
	}
	return nil
}

// howToWrite is the remedy for an unusable baseline.
const howToWrite = "make bench-baseline writes a new one"

func readBaseline(path string) (b baseline, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return b, fmt.Errorf("no baseline: %w; %s", err, howToWrite)
	}
	if err = json.Unmarshal(text, &b); err == nil {
		err = b.check()
	}
	if err != nil {
		return b, fmt.Errorf("%s is not a baseline: %w; %s", path, err, howToWrite)
	}
	return b, nil
}

// check returns an error for a baseline that nothing can be compared with.
func (b baseline) check() error {
	if len(b.Figures) == 0 {
		return errors.New("it has no figures")
	}
	for _, f := range b.Figures {
		if f.Median <= 0 {
			return fmt.Errorf("%s, %s, %s is %v", f.Scenario, f.Case, f.Figure, f.Median)
		}
	}
	return nil
}

func (b baseline) writeTo(path string) error {
	if err := b.check(); err != nil {
		return fmt.Errorf("the measurement is no baseline: %w", err)
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
