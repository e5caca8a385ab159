package main

import (
	"slices"
	"time"
)

// The measured quantities, named as in orchestrator bench.
const (
	rate        = "rate"
	cpu         = "CPU"
	cpuPrograms = "  programs"
	cpuPostgres = "  PostgreSQL"
	wal         = "WAL"
	firstTenth  = "first tenth"
	lastTenth   = "last tenth"
	doneShare   = "done"
)

// reading is one value of one run.
type reading struct {
	task, figure, unit string
	value              float64
}

// Results is everything that was measured.
type Results struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Clocks are those of the processors in MHz, at the beginning and at the end.
	Clocks [2][]float64 `json:"clocks"`
	// Rounds were measured; Planned were to be, but for the limit of the time.
	Rounds    int        `json:"rounds"`
	Planned   int        `json:"planned"`
	WarmUps   int        `json:"warm_ups"`
	Jobs      int        `json:"jobs"`
	Command   string     `json:"command"`
	Machine   Machine    `json:"machine"`
	Systems   []System   `json:"systems"`
	Missing   []string   `json:"missing,omitempty"`
	Sweeps    []Sweep    `json:"sweeps,omitempty"`
	Scenarios []Scenario `json:"scenarios"`
}

// Machine describes the machine, as reported by orchestrator bench.
type Machine struct {
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu,omitempty"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	Holdfast   string            `json:"holdfast"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
}

// System is one of the compared job queues.
type System struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
	// Guarantees are what it promises, in each mode that is measured.
	Guarantees []Guarantee `json:"guarantees"`
}

// Scenario is one way of using the systems.
type Scenario struct {
	Name  string  `json:"name"`
	About string  `json:"about"`
	Jobs  int     `json:"jobs"`
	Cases []*Case `json:"cases"`
}

// Case is a scenario with one setting, for one system.
type Case struct {
	Name   string `json:"name"`
	System string `json:"system"`
	// Settings are those that a sweep has found best.
	Settings settings  `json:"settings,omitempty"`
	Figures  []*Figure `json:"figures"`
}

// Figure is one quantity, over all rounds in their order.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	// Median is the figure that orchestrator bench reports.
	Median float64 `json:"median,omitzero"`
}

func (s *Scenario) add(system string, r reading) {
	c := s.find(r.task, system)
	if c == nil {
		c = &Case{Name: r.task, System: system}
		s.Cases = append(s.Cases, c)
	}
	f := c.figure(r.figure)
	if f == nil {
		f = &Figure{Name: r.figure, Unit: r.unit}
		c.Figures = append(c.Figures, f)
	}
	f.Values = append(f.Values, r.value)
}

func (s *Scenario) find(name, system string) *Case {
	at := slices.IndexFunc(s.Cases, func(c *Case) bool { return c.Name == name && c.System == system })
	if at < 0 {
		return nil
	}
	return s.Cases[at]
}

func (c *Case) figure(name string) *Figure {
	at := slices.IndexFunc(c.Figures, func(f *Figure) bool { return f.Name == name })
	if at < 0 {
		return nil
	}
	return c.Figures[at]
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// ratio is the median of a / b over the rounds. It does not depend on how fast the
// machine was in a round.
func ratio(a, b *Figure) (float64, bool) {
	if a == nil || b == nil || len(a.Values) != len(b.Values) || len(a.Values) == 0 {
		return 0, false
	}
	ratios := make([]float64, len(a.Values))
	for i := range a.Values {
		if b.Values[i] == 0 {
			return 0, false
		}
		ratios[i] = a.Values[i] / b.Values[i]
	}
	return median(ratios), true
}
