// Package trial judges a new version of a plugin: it compares how its attempts end, and how
// long they take, with those of the version that serves at the same time.
package trial

import (
	"fmt"
	"math"
)

// Tally counts attempts that ended, and how many of them failed. Do not add attempts
// that were stopped or released.
type Tally struct {
	Ended  int
	Failed int
}

// Add counts an attempt.
func (t *Tally) Add(failed bool) {
	t.Ended++
	if failed {
		t.Failed++
	}
}

func (t Tally) rate() float64 { return float64(t.Failed) / float64(max(t.Ended, 1)) }

func (t Tally) String() string {
	return fmt.Sprintf("%d of %d attempts failed (%.0f %%)", t.Failed, t.Ended, 100*t.rate())
}

// These are the odds of a false alarm at one check. Final is for the end of a trial:
// three standard deviations, or once in 740 checks. There are many checks before the
// end, so Early is stricter.
const (
	Final = 0.00135
	Early = 1e-6
)

// leastDifference is the smallest difference between two rates of failures that matters.
const leastDifference = 0.05

// Suppose that three attempts in ten fail. Fewer than 10 attempts (few) often show no
// failure at all, and fewer than 50 (enough) may not show that the version is Worse.
const (
	few    = 10
	enough = 50
)

// Few reports whether so little is known of the candidate that it should get more
// attempts.
func Few(candidate Tally) bool { return candidate.Ended < few }

// Unsure reports whether the candidate has failed more often than the serving version, by
// a difference that matters, but too few of its attempts have ended to rule out chance.
func Unsure(candidate, serving Tally) bool {
	return candidate.Failed > 0 && candidate.Ended < enough && candidate.rate()-serving.rate() >= leastDifference
}

// Worse reports whether the candidate clearly fails more often than the serving version: by
// five points at least, and by a difference that chance alone would show less often than
// the odds. This is Fisher's exact test, one-sided: of the F failures among all N
// attempts, f or more fall on the n of the candidate with the probability
//
//	Σ C(n, k) · C(N−n, F−k) / C(N, F)   for k from f to min(n, F)
//
// It is valid for few attempts as for many.
func Worse(candidate, serving Tally, odds float64) bool {
	return worse(candidate, serving, leastDifference, odds)
}

func worse(candidate, serving Tally, difference, odds float64) bool {
	if candidate.rate()-serving.rate() < difference {
		return false
	}
	attempts, failures := candidate.Ended+serving.Ended, candidate.Failed+serving.Failed
	all := logChoose(attempts, failures)
	chance := 0.0
	for k := candidate.Failed; k <= min(candidate.Ended, failures); k++ {
		chance += math.Exp(logChoose(candidate.Ended, k) + logChoose(serving.Ended, failures-k) - all)
	}
	return chance < odds
}

// logChoose returns the logarithm of n over k.
func logChoose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	log, _ := math.Lgamma(float64(n) + 1)
	return log
}
