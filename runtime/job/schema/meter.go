package schema

import (
	"errors"
	"regexp"
)

// A step is about a microsecond of work.
const (
	// bytesForStep is how many bytes of text are compared in a step.
	bytesForStep = 1000
	// A short pattern takes a step for ten bytes; a pattern of 4,000 instructions takes
	// a step for each byte.
	shortProgram        = 450
	instructionsForStep = 4500
	// readInStep is how many bytes of text are counted, or checked for a format, in a step.
	readInStep = 100
	// compiledInStep is how many instructions are compiled in a step, for a pattern in
	// a payload (format "regex").
	compiledInStep = 5
	// passedForStep is how many members or items are skipped in a step.
	passedForStep = 10
)

// A check may take a number of steps for each value in the payload, within bounds.
// Without them, a schema that refers to itself in several alternatives could take
// exponential time in the depth of the payload, and one that searches lists within lists
// quadratic time.
const (
	stepsForValue = 50
	fewestSteps   = 20_000
	mostSteps     = 200_000
	// leastForValue is what each value gets, however many there are.
	leastForValue = 3
	// bytesForValue is how much text counts as one value.
	bytesForValue = 16
)

// allowance returns how many steps a check may take.
func allowance(size int) int {
	return max(fewestSteps, min(stepsForValue*size, max(mostSteps, leastForValue*size)))
}

// meter counts the steps of one check. With a limit of zero it only counts.
type meter struct{ taken, limit int }

// errOutOfSteps is the panic of a check that takes too many steps. There is no other way
// to stop the library.
var errOutOfSteps = errors.New("out of steps")

func (m *meter) charge(steps int) {
	if m.taken += steps; m.limit > 0 && m.taken > m.limit {
		panic(errOutOfSteps)
	}
}

// pattern charges each match for what it may take.
type pattern struct {
	*regexp.Regexp
	instructions int
	meter        *meter
}

func (p *pattern) MatchString(text string) bool {
	p.meter.charge(1 + len(text)*(shortProgram+p.instructions)/instructionsForStep)
	return p.Regexp.MatchString(text)
}
