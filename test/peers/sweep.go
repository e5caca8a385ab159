package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The sweeps. Each tries several settings in one case; others take its winner.
const (
	sweepWork        = "work"
	sweepConnections = "connections"
	sweepBatches     = "batches"
	sweepLife        = "batches while jobs run"
)

// batchSizes are tried by every system that can be given batches of any size.
var batchSizes = []int{100, 500, 1000, 5000}

// connectionCounts are tried by every system whose callers have connections.
var connectionCounts = []int{8, 16, 32, 64}

// inserting returns what every system tries when it inserts jobs.
func inserting() map[string][]settings {
	return map[string][]settings{
		sweepBatches: each(batchSetting, batchSizes...),
		sweepLife:    each(batchSetting, batchSizes...),
	}
}

// connecting adds what every system tries whose callers have connections.
func connecting(work []settings) map[string][]settings {
	all := inserting()
	all[sweepConnections] = each(connectionsSetting, connectionCounts...)
	all[sweepWork] = work
	return all
}

// Sweep is a search for the best settings of every system in one case.
type Sweep struct {
	Name     string `json:"name"`
	Scenario string `json:"scenario"`
	Task     string `json:"task"`
	Jobs     int    `json:"jobs"`
	Tries    []*Try `json:"tries"`
}

// Try is one choice of settings.
type Try struct {
	System   string    `json:"system"`
	Settings settings  `json:"settings"`
	Rates    []float64 `json:"rates"`
	Best     bool      `json:"best"`
}

// sweepShare is the part of the time after which no setting is tried once more.
const sweepShare = 3

// sweep finds the best settings of every system for the chosen scenarios.
func (l *lab) sweep(ctx context.Context, chosen []scenario) error {
	if l.sweeps == 0 {
		return nil
	}
	for _, s := range scenarios {
		for _, t := range s.cases {
			if t.sweep != "" && wanted(t.sweep, chosen) {
				if err := l.sweepCase(ctx, s, t); err != nil {
					return fmt.Errorf("sweep of %s: %w", t.sweep, err)
				}
			}
		}
	}
	return nil
}

// wanted says whether a chosen scenario needs the winners of a sweep.
func wanted(sweep string, chosen []scenario) bool {
	return slices.ContainsFunc(chosen, func(s scenario) bool {
		return slices.ContainsFunc(s.cases, func(t task) bool { return t.sweep == sweep || slices.Contains(t.takes, sweep) })
	})
}

// sweepCase tries all settings of all systems in one case, in turns, and on half of the
// case's jobs.
func (l *lab) sweepCase(ctx context.Context, s scenario, t task) error {
	swept := Sweep{Name: t.sweep, Scenario: s.name, Task: t.name, Jobs: max(s.jobsOf(l.jobs)/2, 1)}
	s.cases = []task{t}
	subjects := map[*Try]system{}
	for _, subject := range l.systems {
		for _, candidate := range subject.candidates(t.sweep) {
			try := &Try{System: subject.title(), Settings: candidate}
			swept.Tries = append(swept.Tries, try)
			subjects[try] = subject
		}
	}
	for turn := range l.sweeps {
		if turn > 0 && time.Since(l.results.Began) > l.within/sweepShare {
			break
		}
		for _, try := range swept.Tries {
			assumed := maps.Clone(l.chosen[try.System])
			assumed[t.sweep] = try.Settings
			readings, err := subjects[try].measure(ctx, l, s, swept.Jobs, assumed)
			if err != nil {
				return causeOf(ctx, fmt.Errorf("%s with %s: %w", try.System, try.Settings, err))
			}
			for _, r := range readings {
				if r.figure == rate {
					try.Rates = append(try.Rates, r.value)
					fmt.Fprintf(l.notes, "%-13s %-8s %-16s %-28s %12s jobs/s  %s\n", "sweeping", s.name, try.System, r.task, rounded(r.value), try.Settings)
				}
			}
		}
	}
	swept.decide()
	for _, try := range swept.Tries {
		if try.Best {
			l.chosen[try.System][t.sweep] = try.Settings
		}
	}
	l.results.Sweeps = append(l.results.Sweeps, swept)
	return nil
}

// decide marks the best settings of each system: those with the highest median.
func (s *Sweep) decide() {
	best := map[string]*Try{}
	for _, try := range s.Tries {
		if so := best[try.System]; so == nil || median(try.Rates) > median(so.Rates) {
			best[try.System] = try
		}
	}
	for _, try := range best {
		try.Best = true
	}
}

// causeOf returns why a context has ended, or else the error.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
