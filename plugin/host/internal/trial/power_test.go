package trial

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// tried simulates a trial with the host's defaults: a tenth of the starts for three
// seconds, ten checks in each period, at most ten periods, and half of the starts while
// the result is unsure or little is known.
func tried(random *rand.Rand, perSecond, bad, good float64) (promoted bool, seconds float64) {
	const look, period, longest = 0.3, 10, 100
	var candidate, serving Tally
	share := 0.1
	for looks := 1; ; looks++ {
		for range int(perSecond*look + random.Float64()) {
			if random.Float64() < share {
				candidate.Add(random.Float64() < bad)
			} else {
				serving.Add(random.Float64() < good)
			}
		}
		odds := Early
		if looks >= period {
			odds = Final
		}
		unsure := Unsure(candidate, serving)
		switch {
		case Worse(candidate, serving, odds), looks >= longest && unsure:
			return false, float64(looks) * look
		case looks >= period && !unsure:
			return true, float64(looks) * look
		}
		share = 0.1
		if unsure || 4*looks >= period && Few(candidate) {
			share = 0.5
		}
	}
}

func TestAVersionThatFailsThreeInTenIsFoundOutAtModestRates(t *testing.T) {
	const rounds = 20_000 // of which 4.8 % are promoted at 10 jobs/s, give or take 0.15
	for perSecond, bound := range map[float64]float64{2: 0.6, 5: 0.2, 10: 0.05, 30: 0.05, 50: 0.05, 100: 0.05, 300: 0.05} {
		random := rand.New(rand.NewPCG(1, uint64(perSecond))) // independent of the map's order
		promoted := 0
		for range rounds {
			if serves, _ := tried(random, perSecond, 0.3, 0); serves {
				promoted++
			}
		}
		share := float64(promoted) / rounds
		t.Logf("%v jobs/s: %.1f %% promoted", perSecond, 100*share)
		require.LessOrEqual(t, share, bound, "at %v jobs/s", perSecond)
	}
}

func TestAVersionThatIsNoWorseIsPromoted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 1000
	for _, perSecond := range []float64{2, 10, 100} {
		for _, rate := range []float64{0, 0.02, 0.1, 0.3} {
			refused, slowest := 0, 0.0
			for range rounds {
				serves, seconds := tried(random, perSecond, rate, rate)
				if !serves {
					refused++
				}
				slowest = max(slowest, seconds)
			}
			t.Logf("%v jobs/s of which %v fail: %.1f %% rolled back, %.1f s at most", perSecond, rate, float64(refused)/rounds*100, slowest)
			require.LessOrEqual(t, refused, rounds/10)
			if rate == 0 {
				require.Less(t, slowest, 5.0)
			}
		}
	}
}
