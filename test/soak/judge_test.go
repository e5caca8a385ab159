package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// steady are rows in which every figure is the same, but for the first, in which it is less.
func steady() []row {
	rows := make([]row, steps)
	for n := range rows {
		rows[n] = row{jobs: (n + 1) * 100_000, values: make([]float64, len(figures))}
		for i, f := range figures {
			rows[n].values[i] = 40
			if f.bytes {
				rows[n].values[i] = 100 * mebi
			}
		}
	}
	for i := range rows[0].values {
		rows[0].values[i] /= 2
	}
	return rows
}

func TestWhatStaysTheSameHolds(t *testing.T) {
	var out strings.Builder
	held, err := show(&out, steady(), true)
	require.NoError(t, err)
	require.True(t, held, out.String())
}

func TestEveryFigureThatGrowsIsFound(t *testing.T) {
	for i, f := range figures {
		t.Run(f.name, func(t *testing.T) {
			rows := steady()
			for n := range rows {
				rows[n].values[i] *= 1 + float64(n)
			}
			var out strings.Builder
			held, err := show(&out, rows, true)
			require.NoError(t, err)
			require.False(t, held)
			require.Equal(t, 1, strings.Count(out.String(), "GROWS"), "only what grows is blamed:\n%s", out.String())

			held, err = show(&out, rows, false)
			require.NoError(t, err)
			require.Equal(t, f.needsTime, held, "a short run judges all but sizes")
		})
	}
}

func TestJobsOfAllKindsAreSubmitted(t *testing.T) {
	kinds := make(map[string]int)
	for n := range 10_000 {
		s := submission(n)
		kinds[s.Payload.(map[string]string)["plan"]]++
		kinds[fmt.Sprintf("held %t", s.Hold)]++
		if s.ConcurrencyKey != "" {
			kinds["keys"]++
		}
	}
	for _, kind := range []string{"succeed", "crash", "sleep", "die", "exhaust", "retry", "report", "held true", "keys"} {
		require.NotZero(t, kinds[kind], kind)
	}
}
