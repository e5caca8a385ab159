package history_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

func TestALineIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), history.WitnessFile)
	written := []history.Change{
		{Op: history.Insert, LSN: 0x16B374D848, XID: 7, Table: "jobs", Row: history.Row{"job_id": "a"}},
		{Generation: 1, Op: history.Promoted, LSN: 1},
	}
	lines, err := history.Create[history.Change](path)
	require.NoError(t, err)
	for _, change := range written {
		require.NoError(t, lines.Append(change))
	}
	require.NoError(t, lines.Close())

	var read []history.Change
	require.NoError(t, history.EachLine(path, func(number int, line history.Change) error {
		read = append(read, line)
		require.Len(t, read, number)
		return nil
	}))
	require.Equal(t, written, read)
}

func TestAMisspelledMemberIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), history.FaultsFile)
	require.NoError(t, os.WriteFile(path, []byte(`{"kind":"kill","tagret":"a"}`+"\n"), 0o600))
	err := history.EachLine(path, func(int, history.Fault) error { return nil })
	require.ErrorContains(t, err, "faults.jsonl:1:")
	require.ErrorContains(t, err, "tagret")
}

func TestOnlyAnEffectMayBeTorn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"event":"began"}`+"\n"+`{"event":"eff`), 0o600))
	count := 0
	require.NoError(t, history.EachEffect(dir, func(file string, number int, line history.Effect) error {
		count++
		require.Equal(t, "a.jsonl", file)
		require.Equal(t, 1, number)
		require.Equal(t, history.Began, line.Event)
		return nil
	}))
	require.Equal(t, 1, count)
	require.ErrorContains(t, history.EachLine(path, func(int, history.Effect) error { return nil }), "no end")
}

func TestRowsReadWhatPostgreSQLWrites(t *testing.T) {
	for _, text := range []string{"2026-11-23 16:35:07.123456+00", "2026-11-23 16:35:07.123456+00:00", "2026-11-23T16:35:07.123456Z"} {
		at, err := history.Row{"at": text}.Time("at")
		require.NoError(t, err)
		require.Equal(t, int64(1795451707123456000), int64(at), text)
	}
	at, err := history.Row{"at": "infinity"}.Time("at")
	require.NoError(t, err)
	require.Equal(t, history.Infinity, at)
	_, err = history.Row{"at": "tomorrow"}.Time("at")
	require.Error(t, err)

	require.Equal(t, "c1-7", history.Row{"tags": `{other,mark:c1-7}`}.Mark())
	require.Equal(t, "c1-7", history.Row{"tags": `["other", "` + history.MarkTag("c1-7") + `"]`}.Mark())
	require.Empty(t, history.Row{"tags": `{}`}.Mark())
}

func TestThe99thPercentileIsTheNearestRank(t *testing.T) {
	require.Zero(t, history.Percentile99(nil))
	all := make([]time.Duration, 200)
	for i := range all {
		all[i] = time.Duration(len(all) - i)
	}
	require.Equal(t, time.Duration(198), history.Percentile99(all))
	require.Equal(t, time.Duration(3), history.Percentile99([]time.Duration{3, 1, 2}))
}

func TestLSNsAreWrittenAsPostgreSQLWritesThem(t *testing.T) {
	lsn, err := history.ParseLSN("16/B374D848")
	require.NoError(t, err)
	require.Equal(t, "16/B374D848", lsn.String())
	_, err = history.ParseLSN("16")
	require.Error(t, err)
}
