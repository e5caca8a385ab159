package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// Every scenario checks for itself that each job was done once.
func TestTheBenchMeasuresEveryScenario(t *testing.T) {
	oneProcess(t, "the bench starts its own orchestrators")
	if testing.Short() {
		t.Skip("takes more than a minute; make test LONG=1 runs it")
	}
	t.Parallel()
	database := pgtest.Pool(t).Config().ConnString()
	profiles := t.TempDir()
	bench := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"),
		"bench", "--database", database, "--runs", "1", "--warm-ups", "0", "--jobs", "1000", "--json",
		"--cpuprofile", profiles, "--memprofile", profiles)
	bench.Stderr = rigtest.Log(t)
	output, err := bench.Output()
	require.NoError(t, err)
	var report struct {
		Scenarios []struct {
			Name  string
			Cases []struct {
				Name    string
				Figures []struct {
					Name   string
					Median float64
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(output, &report), "%s", output)
	require.Len(t, report.Scenarios, 8)
	medians := map[string]float64{}
	for _, s := range report.Scenarios {
		require.NotEmpty(t, s.Cases, s.Name)
		for _, c := range s.Cases {
			require.NotEmpty(t, c.Figures, "%s, %s", s.Name, c.Name)
			for _, f := range c.Figures {
				require.GreaterOrEqual(t, f.Median, 0.0, "%s, %s, %s", s.Name, c.Name, f.Name)
				medians[s.Name+", "+f.Name] = f.Median
			}
		}
	}
	for _, figure := range []string{
		"workoff, WAL", "submit, WAL",
		"workoff, allocations, orchestrator", "workoff, allocated, orchestrator",
		"submit, allocations, orchestrator", "submit, allocated, orchestrator",
		"workoff, allocations, handlers", "workoff, allocated, handlers",
	} {
		require.Greater(t, medians[figure], 1.0, figure)
	}
	for _, profile := range []string{
		"workoff-run-1-backlog-of-1000-orchestrator.cpu.pprof", "workoff-run-1-backlog-of-1000-handlers.cpu.pprof",
		"workoff-run-1-backlog-of-1000-orchestrator.memory.pprof", "submit-run-1-64-clients-orchestrator.cpu.pprof",
	} {
		require.FileExists(t, filepath.Join(profiles, profile))
	}
}
