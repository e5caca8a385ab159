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
	page := string((&Results{
		Began: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Rounds: 3, WarmUps: 1, Jobs: 5000, Command: "make bench-peers",
		Systems:   []System{{Name: "Holdfast"}, {Name: "River", Version: "1.2.3", Settings: "Its best."}},
		Machine:   Machine{CPUs: 2, PostgreSQL: "15.1", Settings: map[string]string{"fsync": "on"}},
		Missing:   []string{"pg-boss: no Node.js"},
		Scenarios: []Scenario{s},
	}).page())
	for _, want := range []string{
		"Date: 21 November 2026. Measured rounds: 3, after 1 to warm up. Jobs in the largest scenario: 5,000.",
		"A trial run",
		"4 callers, in batches, 2,000 jobs:",
		"| Holdfast | 5,000 | 3,000 – 9,000 | – | – | – | – | 1,234 |\n| River | 2,000 | 1,000 – 4,000 | 2.50 × |",
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

// Node.js's drivers have the same beat and the same warm-up.
func TestTheDriversAgree(t *testing.T) {
	text, err := os.ReadFile("node/driver.mjs")
	require.NoError(t, err)
	require.Equal(t, 50*time.Millisecond, beat)
	require.Contains(t, string(text), "const beat = 50;")
	require.Equal(t, time.Second, warmUpWithin)
	require.Contains(t, string(text), "const warmUpWithin = 1000;")
	require.Contains(t, string(text), "mostConnections = 32;")
	require.Equal(t, 32, mostConnections)
}
