package bench

import (
	"slices"
	"time"
)

// Report is the result of all scenarios.
type Report struct {
	Machine   Machine    `json:"machine"`
	Began     time.Time  `json:"began"`
	Runs      int        `json:"runs"`
	Scenarios []Scenario `json:"scenarios"`
}

// Machine is what they ran on.
type Machine struct {
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu,omitempty"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	Holdfast   string            `json:"holdfast,omitempty"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
}

// Scenario is the result of one scenario.
type Scenario struct {
	Name  string  `json:"name"`
	About string  `json:"about"`
	Cases []*Case `json:"cases"`
}

// Case is a scenario at one setting, such as a number of clients.
type Case struct {
	Name    string    `json:"name"`
	Figures []*Figure `json:"figures"`
}

// Figure is one quantity, over all runs.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit,omitempty"`
	Values []float64 `json:"values"`
	Min    float64   `json:"min"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
}

// add adds a value of one run.
func (s *Scenario) add(name, figure, unit string, value float64) {
	at := slices.IndexFunc(s.Cases, func(c *Case) bool { return c.Name == name })
	if at < 0 {
		at = len(s.Cases)
		s.Cases = append(s.Cases, &Case{Name: name})
	}
	s.Cases[at].add(figure, unit, value)
}

func (c *Case) add(name, unit string, value float64) {
	at := slices.IndexFunc(c.Figures, func(f *Figure) bool { return f.Name == name })
	if at < 0 {
		at = len(c.Figures)
		c.Figures = append(c.Figures, &Figure{Name: name, Unit: unit})
	}
	f := c.Figures[at]
	f.Values = append(f.Values, value)
	sorted := slices.Sorted(slices.Values(f.Values))
	f.Min, f.Max = sorted[0], sorted[len(sorted)-1]
	f.Median = middle(sorted)
}

// middle is the median of sorted values.
func middle(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// percentile returns the value that a share of the sorted values does not exceed, by
// nearest rank.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
