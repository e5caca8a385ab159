package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// verdictsOn judges a run.
func verdictsOn(t *testing.T, r *record) []verdict {
	t.Helper()
	require.NoError(t, r.replay())
	return judge(r)
}

func TestAGoodRunPasses(t *testing.T) {
	r, _ := good()
	verdicts := verdictsOn(t, r)
	var out bytes.Buffer
	require.NoError(t, show(&out, verdicts))
	require.Empty(t, violatedBy(verdicts), out.String())
	for _, v := range verdicts {
		require.Positive(t, v.Looked, "%s has looked at nothing", v.Name)
	}
}

func TestAWitnessOutOfOrderIsNoRecord(t *testing.T) {
	r, jobs := good()
	one, other := change(r, history.Insert, "jobs", jobs.plain[3], 0), change(r, history.Insert, "jobs", jobs.plain[4], 0)
	r.witness[one], r.witness[other] = r.witness[other], r.witness[one]
	require.ErrorContains(t, r.replay(), "follows later ones, and was not there before")

	r, _ = good()
	r.witness = append(r.witness, r.witness[len(r.witness)-5:]...)
	require.NoError(t, r.replay(), "a server sends some transactions again")
}

// save writes a run as the runner does.
func save(t *testing.T, r *record) string {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, history.Write(file(history.RunFile), r.run))
	require.NoError(t, history.Write(file(history.LeaksFile), r.leaks))
	require.NoError(t, history.Write(file(history.TimingsFile), r.timings))
	saveLines(t, file(history.CallsFile), r.calls)
	saveLines(t, file(history.FaultsFile), r.faults)
	saveLines(t, file(history.WitnessFile), r.witness)
	saveLines(t, file(history.FinalFile), r.final)
	saveLines(t, file(history.ProcessesFile), r.processes)
	effects := make([]history.Effect, len(r.effects))
	for i, e := range r.effects {
		effects[i] = e.Effect
	}
	saveLines(t, filepath.Join(file(history.EffectsDir), "w-good.jsonl"), effects)
	return dir
}

func saveLines[T any](t *testing.T, path string, all []T) {
	t.Helper()
	lines, err := history.Create[T](path)
	require.NoError(t, err)
	for _, line := range all {
		require.NoError(t, lines.Append(line))
	}
	require.NoError(t, lines.Close())
}

func TestTheExitCodeSaysWhetherTheRunIsGood(t *testing.T) {
	r, jobs := good()
	dir := save(t, r)
	var out, problems bytes.Buffer
	require.Equal(t, holds, run([]string{dir}, &out, &problems), out.String()+problems.String())
	require.Contains(t, out.String(), "V13")
	require.Contains(t, out.String(), "seed 1: all hold; ")
	require.Equal(t, unread, run([]string{t.TempDir()}, &out, &problems))
	require.Contains(t, problems.String(), history.RunFile)
	require.Equal(t, unread, run(nil, &out, &problems))

	r.calls[0].Submissions[0].JobID = "another"
	dir = save(t, r)
	out.Reset()
	require.Equal(t, violated, run([]string{dir}, &out, &problems))
	require.Contains(t, out.String(), "V1: job another: was acknowledged and is lost  [clients.jsonl:1]")
	require.NotContains(t, out.String(), jobs.dead)
	require.Contains(t, out.String(), "\nclients.jsonl:1: {\"client\":\"client-1\",")

	out.Reset()
	require.Equal(t, violated, run([]string{"-json", dir}, &out, &problems))
	var verdicts []verdict
	require.NoError(t, json.Unmarshal(out.Bytes(), &verdicts))
	require.Len(t, verdicts, len(invariants))
	require.Equal(t, []string{"V1", "V3", "V10"}, violatedBy(verdicts))
	require.Equal(t, "another", verdicts[1].Violations[0].Job)
}
