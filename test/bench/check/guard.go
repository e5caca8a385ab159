package main

import (
	"slices"
	"strconv"
)

// How many jobs a run has, by scenario: enough for the kernel to count their
// processor time in hundredths of a second, few enough for all of it to take
// two minutes.
var jobs = map[string]int{"workoff": 50_000, "submit": 16_000}

const (
	runs    = 5
	warmUps = 1
)

// cpu alone is not known everywhere: not without /proc.
const cpu = "CPU"

// bounds are by how much a figure may exceed the baseline. CPU depends on the
// machine and on who shares it; WAL and allocations only on how many jobs
// there happen to be in a batch.
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

// guard is a figure that is looked after.
type guard struct {
	scenario, caseName, figure string
	bound                      float64
}

func (g guard) optional() bool { return g.figure == cpu }

// guards are in the order of the report.
func guards() (all []guard) {
	backlog := "backlog of " + strconv.Itoa(jobs["workoff"])
	for _, of := range []struct{ scenario, caseName string }{
		{"workoff", backlog}, {"submit", "64 clients"}, {"submit", "4 clients, 500 a batch"},
	} {
		for _, b := range bounds {
			// A job that nobody works off has nothing to do with handlers.
			idle := []string{"allocations, handlers", "allocated, handlers"}
			if of.scenario == "workoff" || !slices.Contains(idle, b.figure) {
				all = append(all, guard{of.scenario, of.caseName, b.figure, b.bound})
			}
		}
	}
	return all
}
