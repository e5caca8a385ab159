package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// all is a baseline in which every figure has the value.
func all(value float64) baseline {
	m := baseline{Began: time.Unix(0, 0).UTC(), Commit: "abc", Runs: guardedRuns, Jobs: guardedJobs}
	for _, g := range guards() {
		unit := "bytes/job"
		if g.figure == cpu {
			unit = "µs/job"
		}
		m.Figures = append(m.Figures, guardedFigure{g.scenario, g.caseName, g.figure, unit, value})
	}
	return m
}

func (m baseline) set(t *testing.T, name string, value float64) {
	for i := range m.Figures {
		if m.Figures[i].Figure == name && m.Figures[i].Scenario == "workoff" {
			m.Figures[i].Median = value
			return
		}
	}
	t.Fatal("no figure ", name)
}

func TestAFigureIsWorseOnlyBeyondItsBound(t *testing.T) {
	for _, c := range []struct {
		figure string
		now    float64
		want   verdict
	}{
		{"WAL", 1050, within},
		{"WAL", 1155, within},
		{"WAL", 1156, worse},
		{"WAL", 955, within},
		{"WAL", 954, better},
		{"allocations, orchestrator", 1207, within},
		{"allocations, orchestrator", 1208, worse},
		{"allocated, handlers", 1208, worse},
		{"allocated, handlers", 913, better},
		{cpu, 1575, within},
		{cpu, 1576, worse},
		{cpu, 701, within},
		{cpu, 699, better},
		{cpu, 0, unknown},
	} {
		now := all(1050)
		now.set(t, c.figure, c.now)
		got, err := compare(all(1050), now)
		require.NoError(t, err)
		for _, r := range got.rows {
			want := within
			if r.figure == c.figure && r.scenario == "workoff" {
				want = c.want
			}
			require.Equal(t, want, r.verdict(), "%s, %s: %v", r.scenario, r.figure, r.now)
		}
	}
}

func TestFindingsAreSentences(t *testing.T) {
	now := all(1050)
	got, err := compare(all(1050), now)
	require.NoError(t, err)
	require.Equal(t, []string{"All within the bounds."}, got.findings())

	now.set(t, "WAL", 1210)
	now.set(t, "allocated, handlers", 525)
	got, err = compare(all(1050), now)
	require.NoError(t, err)
	require.Equal(t, []string{
		"WAL a job: 1,210 bytes, 15 % above the baseline of 1,050 (workoff, backlog of 50000)",
		"allocated by the handlers a job: 525 bytes, 50 % below the baseline of 1,050 (workoff, backlog of 50000)",
		"Worse than the bounds allow. If there is a good reason, write a new baseline with make bench-baseline.",
		"Better by more than the bound: update the baseline with make bench-baseline.",
	}, got.findings())
}

func TestOnlyTheSameFiguresAreCompared(t *testing.T) {
	fewer := all(1)
	fewer.Jobs = map[string]int{"workoff": 1}
	_, err := compare(fewer, all(1))
	require.ErrorContains(t, err, "other numbers of jobs")
	require.ErrorContains(t, err, howToWrite)

	older := all(1)
	older.Figures = older.Figures[:len(older.Figures)-1]
	_, err = compare(older, all(1))
	require.ErrorContains(t, err, `it does not have "allocated, orchestrator" of submit, 4 clients, 500 a batch`)
}

func TestAnUnusableBaselineIsAnError(t *testing.T) {
	nothing := all(1)
	nothing.set(t, "WAL", 0)
	for name, c := range map[string]struct{ text, want string }{
		"cut off":    {`{"began": "2026-`, "unexpected end"},
		"no figures": {`{}`, "no figures"},
		"a zero":     {marshal(t, nothing), "workoff, backlog of 50000, WAL is 0"},
	} {
		path := filepath.Join(t.TempDir(), "baseline.json")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		_, err := readBaseline(path)
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, path+" is not a baseline", name)
		require.ErrorContains(t, err, howToWrite, name)
	}
	_, err := readBaseline(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, howToWrite)
}

func TestTheCommittedBaselineHasAllGuardedFigures(t *testing.T) {
	m, err := readBaseline("../baseline.json")
	require.NoError(t, err)
	_, err = compare(m, m)
	require.NoError(t, err)
}

// measured returns measurements in which every guarded figure has the value.
func measured(value float64, without string) func(string) (report, error) {
	return func(name string) (report, error) {
		of := scenario{Name: name}
		for _, g := range guards() {
			if g.scenario == name && g.figure != without {
				of.Cases = append(of.Cases, benchCase{g.caseName, []figure{{g.figure, "bytes/job", value}}})
			}
		}
		return report{Scenarios: []scenario{of}}, nil
	}
}

func marshal(t *testing.T, of any) string {
	text, err := json.Marshal(of)
	require.NoError(t, err)
	return string(text)
}

func (c check) output(measure func(string) (report, error)) (string, error) {
	var out bytes.Buffer
	err := c.run(measure, &out)
	return out.String(), err
}

func TestOnlyAStrictCheckFailsForAWorseFigure(t *testing.T) {
	file, summary := filepath.Join(t.TempDir(), "baseline.json"), filepath.Join(t.TempDir(), "summary")
	out, err := check{write: true, baseline: file}.output(measured(100, ""))
	require.NoError(t, err)
	require.Contains(t, out, file+" is written")

	out, err = check{strict: true, baseline: file}.output(measured(105, ""))
	require.NoError(t, err)
	require.Contains(t, out, "All within the bounds.")

	out, err = check{baseline: file, summary: summary}.output(measured(120, ""))
	require.NoError(t, err)
	require.Contains(t, out, "WAL a job: 120 bytes, 20 % above the baseline of 100 (submit, 64 clients)")
	page, err := os.ReadFile(summary)
	require.NoError(t, err)
	require.Contains(t, string(page), "| submit | 64 clients | WAL | bytes/job | 100 | 120 | 1.20 | 1.10 | WORSE |")
	require.Contains(t, string(page), "- WAL a job: 120 bytes")

	_, err = check{strict: true, baseline: file}.output(measured(120, ""))
	require.ErrorIs(t, err, errWorse)
}

func TestACheckThatCannotMeasureFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "baseline.json")
	require.NoError(t, all(100).writeTo(file))
	broken := errors.New("broken")
	_, err := check{baseline: file}.output(func(string) (report, error) { return report{}, broken })
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "measuring submit")
	_, err = check{baseline: file}.output(measured(100, "WAL"))
	require.ErrorContains(t, err, `the bench does not report "WAL"`)

	// Processor times come from the kernel, and not every kernel has them.
	out, err := check{strict: true, baseline: file}.output(measured(100, cpu))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(out, string(unknown)))
}

func TestTheBenchMeasuresOnTheGivenServer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "orchestrator")
	script := `#!/bin/sh
echo '{"machine": {"cpu": "'"$*"'"}}'
[ "$2" = workoff ]
`
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	told, err := bench{program: program}.measure(t.Context(), "workoff")
	require.NoError(t, err)
	require.Equal(t, "bench workoff --json --runs 5 --warm-ups 1 --jobs 50000", told.Machine.CPU)
	told, err = bench{program: program, database: "postgres://host"}.measure(t.Context(), "workoff")
	require.NoError(t, err)
	require.Contains(t, told.Machine.CPU, "--jobs 50000 --database postgres://host")

	_, err = bench{program: program}.measure(t.Context(), "submit")
	require.ErrorContains(t, err, program+" bench submit --json")
}
