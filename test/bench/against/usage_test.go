package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSpreadOfFiguresIsBetweenTheFiguresAroundTheirMedian(t *testing.T) {
	figures := make([]float64, 100)
	for i := range figures {
		figures[len(figures)-1-i] = float64(i + 1)
	}
	// Of 100 figures, the 40th and the 60th or 61st (binomial distribution with p = 0.5).
	require.Equal(t, spread{median: 50.5, low: 40, high: 60}, spreadOf(figures))
	require.Equal(t, spread{median: 7, low: 7, high: 7}, spreadOf([]float64{7}))
}

func TestTurnsAreComparedRoundByRound(t *testing.T) {
	turns := []usage{{jobs: 10, handled: 40 * time.Microsecond, stored: 20 * time.Microsecond, wal: 100}, {jobs: 10, handled: 90 * time.Microsecond, stored: 30 * time.Microsecond, wal: 300}}
	others := []usage{{jobs: 5, handled: 10 * time.Microsecond, stored: 5 * time.Microsecond}, {jobs: 20, handled: 40 * time.Microsecond, stored: 40 * time.Microsecond}}
	total, ratios := summarize(turns, others)
	require.Equal(t, usage{jobs: 20, handled: 130 * time.Microsecond, stored: 50 * time.Microsecond, wal: 400}, total)
	require.InDelta(t, 9, total.perJob(), 1e-9)
	require.InDelta(t, 20, total.walPerJob(), 1e-9)
	require.InDelta(t, 2.5, ratios.median, 1e-9) // 6 to 3 in the first round, and 12 to 4 in the second
}
