package trial

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const slowdown = 3

func durations(jobType string, took ...time.Duration) *Durations {
	d := new(Durations)
	for _, one := range took {
		d.Add(jobType, one)
	}
	return d
}

func times(n int, took time.Duration) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = took
	}
	return all
}

func under(jobType string, early bool, n int, age time.Duration) []Running {
	all := make([]Running, n)
	for i := range all {
		all[i] = Running{JobType: jobType, For: age, Early: early}
	}
	return all
}

func TestPaces(t *testing.T) {
	const usual = 100 * time.Millisecond
	serving := Work{Durations: durations("T", times(40, usual)...)}
	for name, c := range map[string]struct {
		candidate                      Work
		slower, early, unsure, doubted bool
	}{
		"as fast":              {candidate: Work{Durations: durations("T", times(10, usual)...)}},
		"twice as slow":        {candidate: Work{Durations: durations("T", times(10, 2*usual)...)}},
		"twenty times as slow": {candidate: Work{Durations: durations("T", times(10, 20*usual)...)}, slower: true, early: true, unsure: true, doubted: true},
		"slow three times":     {candidate: Work{Durations: durations("T", times(3, 20*usual)...)}, slower: true, unsure: true, doubted: true},
		"slow twice":           {candidate: Work{Durations: durations("T", times(2, 20*usual)...)}, slower: true, unsure: true, doubted: true},
		"slow once":            {candidate: Work{Durations: durations("T", 20*usual)}, unsure: true},
		"one odd job of ten":   {candidate: Work{Durations: durations("T", append(times(9, usual), 20*usual)...)}},
		"nothing done yet, and late already": {
			candidate: Work{Durations: new(Durations), Running: under("T", true, 3, 4*usual)}, unsure: true,
		},
		"nothing done yet, and in time": {
			candidate: Work{Durations: new(Durations), Running: under("T", true, 3, usual/2)},
		},
		"under way, and slow already": {
			candidate: Work{Durations: new(Durations), Running: under("T", false, 3, 4*usual)}, slower: true, unsure: true, doubted: true,
		},
		"under way for longer than usual, as others were that ended": {
			candidate: Work{Durations: durations("T", times(10, usual)...), Running: under("T", false, 3, 2*usual)},
		},
	} {
		paces := Paces(c.candidate, serving, slowdown)
		require.Len(t, paces, 1, name)
		p := paces[0]
		require.Equal(t, usual, p.Usual, name)
		require.Equal(t, c.slower, p.Slower(Final), name)
		require.Equal(t, c.early, p.Slower(Early), name)
		require.Equal(t, c.unsure, p.Unsure(), name)
		require.Equal(t, c.doubted, p.Doubtful(), name)
	}
}

func TestThereIsNoPaceWithoutBothVersions(t *testing.T) {
	known := durations("T", times(leastKept, time.Second)...)
	require.Empty(t, Paces(Work{Durations: known}, Work{Durations: new(Durations)}, slowdown))
	require.Empty(t, Paces(Work{Durations: known}, Work{Durations: durations("T", times(leastKept-1, time.Second)...)}, slowdown))
	require.Empty(t, Paces(Work{Durations: durations("OTHER", time.Second)}, Work{Durations: known}, slowdown))
	require.Len(t, Paces(Work{Durations: known}, Work{Durations: known}, slowdown), 1)
}

func TestAttemptsThatTakeNoTimeAreNotSlow(t *testing.T) {
	serving := Work{Durations: durations("T", times(40, 100*time.Microsecond)...)}
	paces := Paces(Work{Durations: durations("T", times(40, 2*time.Millisecond)...)}, serving, slowdown)
	require.False(t, paces[0].Slower(Final))
}

func TestOnlyTheLatestDurationsCount(t *testing.T) {
	d := durations("T", append(times(100, time.Hour), times(kept, time.Second)...)...)
	paces := Paces(Work{Durations: d}, Work{Durations: d}, slowdown)
	require.Equal(t, time.Second, paces[0].Usual)
	require.Equal(t, kept, paces[0].candidate.Ended)
}

// Durations come from a log-normal distribution: most jobs take about the same time,
// some many times that.
func TestSlowerIsSeldomWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, factor, spread float64) Work {
		d := new(Durations)
		for range n {
			d.Add("T", time.Duration(factor*math.Exp(spread*random.NormFloat64())*float64(50*time.Millisecond)))
		}
		return Work{Durations: d}
	}
	const rounds = 2000
	for _, spread := range []float64{0.1, 0.5, 1, 2} {
		for _, n := range []int{3, 10, 50} {
			same, twenty := 0, 0
			for range rounds {
				serving := draw(60, 1, spread)
				if Paces(draw(n, 1, spread), serving, slowdown)[0].Slower(Final) {
					same++
				}
				if Paces(draw(n, 20, spread), serving, slowdown)[0].Slower(Final) {
					twenty++
				}
			}
			t.Logf("spread %v, %d attempts: %d of %d the same are taken for slower, %d of those 20 times as slow", spread, n, same, rounds, twenty)
			require.LessOrEqual(t, same, rounds/500)
			if spread <= 1 && n >= 10 {
				require.GreaterOrEqual(t, twenty, rounds*98/100)
			}
		}
	}
}

func TestASlowdownOfBothVersionsCountsAgainstNeither(t *testing.T) {
	serving := durations("T", times(kept, 20*time.Millisecond)...)
	serving.BeginTrial()
	candidate := Work{Durations: durations("T", times(8, 300*time.Millisecond)...)}
	p := Paces(candidate, Work{Durations: serving}, slowdown)[0]
	require.False(t, p.Slower(Final), "nothing is known of the other since then")
	require.True(t, p.Unsure())
	for range leastKept {
		serving.Add("T", 290*time.Millisecond)
	}
	p = Paces(candidate, Work{Durations: serving}, slowdown)[0]
	require.False(t, p.Slower(Final))
	require.False(t, p.Unsure())
	require.False(t, p.Doubtful())
}
