package schema

import (
	"errors"
	"regexp"
)

// A step is about a microsecond of work.
const (
	// bytesForStep is how much text is compared in a step.
	bytesForStep = 1000
	// A short pattern takes a step for ten bytes, one of 4,000 instructions a
	// step for each byte.
	shortProgram        = 450
	instructionsForStep = 4500
	// readInStep is how much text is counted, or read as a format, in a step.
	readInStep = 100
	// compiledInStep is how many instructions a pattern in a payload, of the
	// format "regex", is compiled to in a step.
	compiledInStep = 5
	// passedForStep is how many members or items are passed over in a step.
	passedForStep = 10
)

// How many steps a check may take: some for each value in the payload, within
// bounds. A schema that refers to itself in several alternatives could make
// their number exponential in the depth of the payload, and one that looks
// through lists within lists its square.
const (
	stepsForValue = 50
	fewestSteps   = 20_000
	mostSteps     = 200_000
	// leastForValue is left to each value however many there are.
	leastForValue = 3
	// bytesForValue is how much text counts as one value.
	bytesForValue = 16
)

// allowance returns how many steps a check may take.
func allowance(size int) int {
	return max(fewestSteps, min(stepsForValue*size, max(mostSteps, leastForValue*size)))
}

// meter counts the steps of one check. One whose limit is zero only counts.
type meter struct{ taken, limit int }

// errOutOfSteps is what a check panics with that takes too many steps: the
// library has no other way to be stopped.
var errOutOfSteps = errors.New("out of steps")

func (m *meter) charge(steps int) {
	if m.taken += steps; m.limit > 0 && m.taken > m.limit {
		panic(errOutOfSteps)
	}
}

// pattern charges for its matches what they may take.
type pattern struct {
	*regexp.Regexp
	instructions int
	meter        *meter
}

func (p *pattern) MatchString(text string) bool {
	p.meter.charge(1 + len(text)*(shortProgram+p.instructions)/instructionsForStep)
	return p.Regexp.MatchString(text)
}
