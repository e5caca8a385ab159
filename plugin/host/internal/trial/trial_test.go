package trial

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorse(t *testing.T) {
	for _, c := range []struct {
		candidate, serving Tally
		final, early       bool
	}{
		{Tally{30, 9}, Tally{270, 0}, true, true},
		{Tally{10, 3}, Tally{90, 0}, true, false},
		{Tally{3, 3}, Tally{27, 0}, true, false},
		{Tally{10, 10}, Tally{90, 0}, true, true},
		{Tally{10, 10}, Tally{90, 90}, false, false},
		{Tally{1, 1}, Tally{90, 0}, false, false},  // one failure may be chance
		{Tally{2, 2}, Tally{2, 0}, false, false},   // too few to tell
		{Tally{90, 90}, Tally{0, 0}, false, false}, // nothing to compare with
		{Tally{0, 0}, Tally{0, 0}, false, false},
		{Tally{100, 12}, Tally{900, 90}, false, false}, // by chance
		{Tally{100, 25}, Tally{900, 90}, true, false},
		{Tally{100_000, 4_000}, Tally{900_000, 900}, false, false}, // certain, but too small to matter
		{Tally{100_000, 10_000}, Tally{900_000, 900}, true, true},
		{Tally{1000, 0}, Tally{1000, 500}, false, false}, // better
	} {
		name := fmt.Sprintf("%s against %s", c.candidate, c.serving)
		require.Equal(t, c.final, Worse(c.candidate, c.serving, Final), name)
		require.Equal(t, c.early, Worse(c.candidate, c.serving, Early), name)
	}
}

// An equally good version almost never counts as worse, for any rate of failures and
// any share. A much worse version does.
func TestWorseIsSeldomWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, rate float64) (t Tally) {
		for range n {
			t.Add(random.Float64() < rate)
		}
		return t
	}
	const rounds = 2000
	for _, rate := range []float64{0, 0.01, 0.1, 0.5} {
		for _, serving := range []int{900, 100} {
			wrong, found := 0, 0
			for range rounds {
				if Worse(draw(100, rate), draw(serving, rate), Final) {
					wrong++
				}
				if Worse(draw(100, rate+0.4), draw(serving, rate), Final) {
					found++
				}
			}
			require.LessOrEqual(t, wrong, rounds/200, "at a rate of %v, against %d", rate, serving)
			require.GreaterOrEqual(t, found, rounds*99/100, "at a rate of %v, against %d", rate, serving)
		}
	}
}

func TestACandidateThatHasFailedIsWatchedUntilThereIsEnough(t *testing.T) {
	for _, c := range []struct {
		candidate, serving Tally
		unsure             bool
	}{
		{Tally{}, Tally{}, false},
		{Tally{3, 0}, Tally{27, 0}, false},
		{Tally{3, 1}, Tally{27, 0}, true},
		{Tally{10, 2}, Tally{90, 0}, true}, // not Worse yet
		{Tally{49, 3}, Tally{90, 0}, true},
		{Tally{50, 3}, Tally{90, 0}, false},
		{Tally{10, 2}, Tally{90, 18}, false},
		{Tally{40, 1}, Tally{360, 0}, false}, // too small to matter
	} {
		require.Equal(t, c.unsure, Unsure(c.candidate, c.serving), "%s against %s", c.candidate, c.serving)
	}
}
