package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// recorded loads a run that was recorded: 25 seconds with four kinds of faults, failovers
// among them. The runner made it with
//
//	-duration 25s -seed 11 -short -rate 8 -pooler no -only failover,kill-plugin,stop-orchestrator,lose-commit-answers
func recorded(t *testing.T) *record {
	t.Helper()
	file, err := os.Open("testdata/run.tar.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	dir := t.TempDir()
	for archive := tar.NewReader(unzipped); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.Clean("/"+entry.Name))
		if entry.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		text, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	r, err := load(dir)
	require.NoError(t, err)
	return r
}

func TestARecordedRunPassesUnlessItIsSpoiled(t *testing.T) {
	succeeded := func(r *record) int {
		for i, row := range r.final {
			if row.Table == "jobs" && row.Row["state"] == "succeeded" && row.Row.Mark() != "" {
				return i
			}
		}
		panic("none succeeded")
	}
	for _, c := range []struct {
		name, by string
		spoil    func(r *record, at int, job string)
	}{
		{name: "as it is", spoil: func(*record, int, string) {}},
		{"a job is lost", "V1", func(r *record, at int, _ string) { without(&r.final, at) }},
		{"a job is of another type", "V2", func(r *record, at int, _ string) { r.final[at].Row["job_type"] = "OTHER" }},
		{"a job leaves its list twice", "V4", func(r *record, _ int, job string) {
			r.witness[change(r, history.Delete, "ready", job, 0)].Table = "parked"
		}},
		{"a lease is issued again", "V6", func(r *record, _ int, job string) {
			at := change(r, history.Insert, "leases", job, 0)
			r.witness[at].Row["lease_id"] = r.leaseBefore(at)
		}},
		{"a success has another lease", "V7", func(r *record, _ int, job string) {
			r.witness[ending(r, job, "succeeded")].Row["lease_id"] = "another"
		}},
		{"an effect is missing", "V8", func(r *record, _ int, job string) {
			effectsOf(r, job, func(e *history.Effect) bool { return e.Event != history.Done })
		}},
		{"a success does not count as an attempt", "V9", func(r *record, _ int, job string) {
			r.witness[ending(r, job, "succeeded")].Row["attempt"] = "0"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recorded(t)
			at := succeeded(r)
			c.spoil(r, at, r.final[at].Row["job_id"])
			verdicts := verdictsOn(t, r)
			var out bytes.Buffer
			require.NoError(t, show(&out, verdicts))
			if c.by == "" {
				require.Empty(t, violatedBy(verdicts), out.String())
				return
			}
			require.Contains(t, violatedBy(verdicts), c.by, out.String())
		})
	}
}

// leaseBefore is a lease id that was issued before or, for the first, after the line.
func (r *record) leaseBefore(at int) string {
	for i, c := range r.witness {
		if i != at && c.Table == "leases" && c.Op == history.Insert {
			return c.Row["lease_id"]
		}
	}
	panic("no other lease")
}
