package main

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRatiosAreTakenInEachRound(t *testing.T) {
	// Twice as fast in every round, though the machine was not the same.
	ours, theirs := &Figure{Values: []float64{200, 20, 2000}}, &Figure{Values: []float64{100, 10, 1000}}
	got, ok := ratio(ours, theirs)
	require.True(t, ok)
	require.InDelta(t, 2, got, 1e-9)
	for _, none := range []*Figure{nil, {}, {Values: []float64{1}}, {Values: []float64{1, 0, 1}}} {
		_, ok := ratio(ours, none)
		require.False(t, ok)
	}
}

func TestTenthsFollowThePace(t *testing.T) {
	even := report{Done: 1000, Pace: []int{50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50}}
	first, last := even.tenths()
	require.InDelta(t, 1000, first, 1e-6)
	require.InDelta(t, 1000, last, 1e-6)
	slowing := report{Done: 1000, Pace: []int{0, 0, 900, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}}
	first, last = slowing.tenths()
	require.InDelta(t, 18000, first, 1)
	require.InDelta(t, 200, last, 1)
	first, last = report{Done: 10, Pace: []int{10}}.tenths()
	require.Zero(t, first)
	require.Zero(t, last)
}

func TestThePageSaysWhoWasFasterAndHowItWasMeasured(t *testing.T) {
	s := Scenario{Name: "insert", About: "jobs", Jobs: 1000}
	for _, r := range []struct {
		system, figure string
		value          float64
	}{
		{"River", rate, 1000},
		{"River", rate, 2000},
		{"River", rate, 4000},
		{"Holdfast", rate, 3000},
		{"Holdfast", rate, 5000},
		{"Holdfast", rate, 9000},
		{"Holdfast", wal, 1234},
	} {
		s.add(r.system, reading{"4 callers, in batches", r.figure, "", r.value})
	}
	swept := Sweep{Name: sweepBatches, Scenario: "insert", Task: "4 callers, in batches", Jobs: 200, Tries: []*Try{
		{System: "River", Settings: settings{batchSetting: 100}, Rates: []float64{10, 30}},
		{System: "River", Settings: settings{batchSetting: 5000}, Rates: []float64{25, 35}},
	}}
	swept.decide()
	page := string((&Results{
		Began: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Ended: time.Date(2026, 11, 21, 0, 31, 0, 0, time.UTC),
		Clocks: [2][]float64{{2445.4, 2445.4}, {2000, 2500}}, Rounds: 3, Planned: 5, WarmUps: 1, Jobs: 5000, Command: "make bench-peers",
		Systems:   []System{{Name: "Holdfast"}, {Name: "River", Version: "1.2.3", Settings: "Its best."}},
		Machine:   Machine{CPUs: 2, PostgreSQL: "15.1", Settings: map[string]string{"fsync": "on"}},
		Missing:   []string{"pg-boss: no Node.js"},
		Sweeps:    []Sweep{swept},
		Scenarios: []Scenario{s},
	}).page())
	for _, want := range []string{
		"Date: 21 November 2026, in 31m0s. Measured rounds: 3, after 1 to warm up. Jobs in the largest scenario: 5,000.",
		"A trial run",
		"2 × unknown; their clock: 2,445 MHz at the beginning, 2,000 – 2,500 MHz at the end",
		"no time** for more of the 5 rounds",
		"**Batches**: insert, 4 callers, in batches. 400 jobs:",
		"| River | `batch` 100 | 20.0 |\n| River | `batch` 5,000 | **30.0** |",
		"### Hatchet",
		"4 callers, in batches, 2,000 jobs:",
		"| Holdfast | 5,000 | 3,000 – 9,000 | – | – | – | – | 1,234 | – |\n| River | 2,000 | 1,000 – 4,000 | 2.50 × |",
		"PostgreSQL 15.1 on the same machine: `fsync=on`.",
		"**River** 1.2.3. Its best.",
		"Not measured: pg-boss: no Node.js.",
	} {
		require.Contains(t, page, want)
	}
}

func TestFiguresOfTheBenchAreFoundByName(t *testing.T) {
	const told = `{"scenarios": [{"cases": [
		{"name": "64 clients", "figures": [{"name": "rate", "median": 10}, {"name": "CPU", "median": 9},
			{"name": "  orchestrator", "median": 3}, {"name": "  handlers", "median": 2}, {"name": "  PostgreSQL", "median": 4}]},
		{"name": "4 clients, 500 a batch", "figures": [{"name": "rate", "median": 20}]}]}]}`
	var r benchReport
	require.NoError(t, json.Unmarshal([]byte(told), &r))
	at := func(name string) scenario {
		for _, s := range scenarios {
			if s.name == name {
				return s
			}
		}
		t.Fatal(name)
		return scenario{}
	}
	readings, err := r.readings(at("insert"))
	require.NoError(t, err)
	require.Equal(t, []reading{
		{"64 callers, one job a call", rate, "jobs/s", 10},
		{"64 callers, one job a call", cpu, "µs/job", 9},
		{"64 callers, one job a call", cpuPrograms, "µs/job", 5},
		{"64 callers, one job a call", cpuPostgres, "µs/job", 4},
		{"4 callers, in batches", rate, "jobs/s", 20},
	}, readings)
	_, err = r.readings(at("workoff"))
	require.ErrorContains(t, err, "workoff")
}

func TestTasksTakeTheWinnersOfSweeps(t *testing.T) {
	won := choices{sweepWork: {"a": 1, "b": 1}, sweepLife: {"b": 2}, sweepBatches: {"c": 3}}
	require.Equal(t, settings{"a": 1, "b": 2}, won.of(task{takes: []string{sweepWork}, sweep: sweepLife}))
	require.Empty(t, won.of(task{}))
	require.Empty(t, choices(nil).of(task{sweep: sweepLife}))
	var owners []string
	for _, s := range scenarios {
		for _, c := range s.cases {
			for _, name := range c.takes {
				require.Contains(t, owners, name, "%s takes the winner of a sweep that comes later", s.name)
			}
			owners = append(owners, c.sweep)
		}
	}
}

// Each system tries the same sizes of batches, and each peer the same connections.
func TestAllSystemsSweepTheSameSizes(t *testing.T) {
	for _, name := range []string{sweepBatches, sweepLife} {
		want := each(batchSetting, batchSizes...)
		require.Equal(t, want, holdfast{}.candidates(name))
		for _, work := range [][]settings{riverWork, graphileWork, pgBossWork} {
			require.Equal(t, want, peer{sweeps: connecting(work)}.candidates(name))
		}
	}
	require.Empty(t, holdfast{}.candidates(sweepWork), "the orchestrator keeps its defaults")
}

func TestClocksAreReadForEachProcessor(t *testing.T) {
	require.Equal(t, []float64{2445.404, 1500}, clocksIn("processor\t: 0\ncpu MHz\t\t: 2445.404\nbogomips: 1\n\nprocessor\t: 1\ncpu MHz\t\t: 1500.000\n"))
	require.Equal(t, "unknown", tellClocks(nil))
}

// Node.js's drivers have the same beat and the same warm-up.
func TestTheDriversAgree(t *testing.T) {
	text, err := os.ReadFile("node/driver.mjs")
	require.NoError(t, err)
	require.Equal(t, 50*time.Millisecond, beat)
	require.Contains(t, string(text), "const beat = 50;")
	require.Equal(t, time.Second, warmUpWithin)
	require.Contains(t, string(text), "const warmUpWithin = 1000;")
}
