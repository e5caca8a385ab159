package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageComparesWithTheSameRound(t *testing.T) {
	m := &measurement{rounds: 3}
	for round, cost := range []struct{ off, rare, all float64 }{{10, 10.5, 15}, {20, 20, 26}, {8, 8.8, 16}} {
		for i, value := range []float64{cost.off, cost.rare, cost.all} {
			m.taken = append(m.taken,
				taken{round: round, mode: modes[i].name, of: "workoff: a backlog", figure: orchestrator, value: value},
				taken{round: round, mode: modes[i].name, of: "workoff: a backlog", figure: "rate", value: 1000})
		}
	}
	page := string(m.page())
	require.Contains(t, page, "| off | 10.00 | – |")
	require.Contains(t, page, "| 0.01 | 10.50 | 1.05 × |")
	require.Contains(t, page, "| 1 | 16.00 | 1.50 × |")
}
