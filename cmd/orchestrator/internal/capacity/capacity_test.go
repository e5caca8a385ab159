package capacity

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func TestAnEstimateAddsUp(t *testing.T) {
	e := Plan(Need{Rate: 1000, Payload: 2000, Keep: 30 * day, Orchestrators: 2})
	require.EqualValues(t, 3449, e.JobBytes)
	require.EqualValues(t, 3627, e.JobWAL)
	require.EqualValues(t, 2_592_000_000, e.Jobs)
	require.EqualValues(t, 2_592_000_000*3449, e.Ledger)
	require.InDelta(t, 1.2*2_592_000_000*3449+4<<30, float64(e.Disk), 1e3)
	require.InDelta(t, 1000*(3627+113), e.WAL, 1)
	require.InDelta(t, 1.5*e.WAL, e.MostWAL, 1)
	require.InDelta(t, 1000*(1.8*70.4+4.5)/1e6, e.DatabaseCores.Batches, 1e-9)
	require.InDelta(t, 1000*(1.8*132+4.5)/1e6, e.DatabaseCores.Single, 1e-9)
	require.InDelta(t, 0.034, e.ProgramCores.Batches, 1e-9)
	require.Equal(t, 48, e.Connections)
}

func TestAnEstimateNeverOverflows(t *testing.T) {
	sound := Need{Rate: 1000, Payload: 2000, Keep: 30 * day, Orchestrators: 2}
	require.NoError(t, sound.Validate())
	for name, change := range map[string]func(*Need){
		"--rate must be":          func(n *Need) { n.Rate = math.NaN() },
		"at most 1000000 jobs":    func(n *Need) { n.Rate = 1_000_001 },
		"--orchestrators must be": func(n *Need) { n.Orchestrators = 0 },
		"at most 10000":           func(n *Need) { n.Orchestrators = 10_001 },
		"lower one of them":       func(n *Need) { n.Rate, n.Payload, n.Keep = 1e6, 1e9, 36_500*day },
	} {
		need := sound
		change(&need)
		require.ErrorContains(t, need.Validate(), name)
	}
	most := Need{Rate: MaxRate, Payload: 2000, Keep: 3000 * day, Orchestrators: MaxOrchestrators}
	require.NoError(t, most.Validate())
	e := Plan(most)
	require.Positive(t, e.Ledger)
	require.Greater(t, e.Disk, e.Ledger)
	require.Equal(t, 240_000, e.Connections)
	require.Contains(t, fmt.Sprint(e.Remarks(most)), "More than 17559 jobs a second")
	require.Contains(t, fmt.Sprint(e.Remarks(most)), "32 TiB")
}

func TestBetweenTwoMeasuredPayloadsIsAMean(t *testing.T) {
	require.EqualValues(t, (819+1710+1)/2, Plan(Need{Payload: 300}).JobBytes)
	require.EqualValues(t, 631, Plan(Need{Payload: 2}).JobBytes)
	last, previous := points[len(points)-1], points[len(points)-2]
	beyond := Plan(Need{Payload: 2*last.payload - previous.payload})
	require.EqualValues(t, 2*last.disk-previous.disk, beyond.JobBytes, "beyond the last it goes on")
	require.Positive(t, Plan(Need{}).JobBytes)
}

func TestSizesAndTimesAreRead(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "500": 500, "2kB": 2000, "2 KB": 2000, "1.5kB": 1500, "64KiB": 65536, "1MB": 1e6, "1MiB": 1 << 20, "7B": 7} {
		got, err := ParseBytes(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", "x", "2 parsecs", "9999999MB", "1e3"} {
		_, err := ParseBytes(text)
		require.Error(t, err, text)
	}
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "1.5d": 36 * time.Hour, "12h": 12 * time.Hour, "1m": time.Minute, "36500d": 36_500 * day, "876000h": 36_500 * day,
	} {
		got, err := ParseKept(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "30", "-1h", "d", "99999d"} {
		_, err := ParseKept(text)
		require.Error(t, err, text)
	}
}

func TestErrorsNameTheBound(t *testing.T) {
	for _, text := range []string{"10GB", "1TiB", "65MiB", "1" + strings.Repeat("0", 400)} {
		_, err := ParseBytes(text)
		require.EqualError(t, err, fmt.Sprintf("%q is too large: a payload has at most 32MiB (server.max_body_bytes), "+
			"a result 32MiB (jobs.max_result_bytes), so write at most 64MiB", text))
	}
	got, err := ParseBytes("64MiB")
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, got)
	for text, complaint := range map[string]string{
		"0s": "retention keeps jobs for at least 1m", "59s": "for at least 1m", "0d": "for at least 1m", "0": "for at least 1m",
		"876001h": "retention keeps jobs for at most 876000h, or for ever", "36501d": "at most 876000h", "1" + strings.Repeat("0", 400) + "d": "at most 876000h",
		"keep": "grows without end; write how long you want to look ahead",
	} {
		_, err := ParseKept(text)
		require.ErrorContains(t, err, complaint, text)
	}
}

func TestTooManyConnectionsAreNoted(t *testing.T) {
	remarks := func(orchestrators int) string {
		need := Need{Rate: 1, Payload: 2, Keep: day, Orchestrators: orchestrators}
		return strings.Join(Plan(need).Remarks(need), " ")
	}
	require.Empty(t, remarks(4))
	require.Equal(t, "5 orchestrators use up to 120 connections, and PostgreSQL allows 100 by default. "+
		"Set max_connections of PostgreSQL to 150, or database.max_connections of each orchestrator to 15.", remarks(5))
	require.Contains(t, remarks(10), "Set max_connections of PostgreSQL to 300, or database.max_connections of each orchestrator to 5. "+
		"With as many, prefer PgBouncer, through which all of them share 40: see docs/how-to/scale.md")
	require.NotContains(t, remarks(20), "database.max_connections", "fewer than an orchestrator needs")
	page, err := os.ReadFile(filepath.Join("../../../..", scale))
	require.NoError(t, err)
	require.Regexp(t, `(?s)From about ten\s+orchestrators on, \[PgBouncer\]\(postgresql.md#pgbouncer\) lets them share 40\.`, string(page))
}

// A figure that is measured again must be changed here too.
func TestEveryFigureIsInTheDocumentation(t *testing.T) {
	for _, f := range Figures {
		page, err := os.ReadFile(filepath.Join("../../../..", f.Source))
		require.NoError(t, err)
		require.Contains(t, string(page), f.quote, f.Source)
	}
	page, err := os.ReadFile(filepath.Join("../../../..", ownPage))
	require.NoError(t, err)
	for _, p := range points {
		require.Contains(t, string(page), fmt.Sprintf("| %s | %s | %s | %.1f |",
			show.Count(p.payload), show.Count(int64(p.disk)), show.Count(int64(p.wal)), p.time))
	}
	require.Equal(t, 1.5, math.Round(10*1033/680.0)/10)
	require.Equal(t, 0.2, math.Round(10*(11_192/9_371.0-1))/10)
}
