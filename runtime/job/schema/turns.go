package schema

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// ErrBusy says that too many checks that take long are under way.
var ErrBusy = errors.New("too many payloads that take long to check")

const (
	// quickSteps is what every check may take at once, a millisecond or two.
	quickSteps = 2000
	// turnWithin is how long a check that takes more waits for its turn.
	turnWithin = 10 * time.Second
)

// More could not run at the same time anyway, and each evaluator can need
// memory in proportion to the payload.
var quickAtOnce = runtime.GOMAXPROCS(0)

// slowTurns are held by checks that take long, of whatever schema. They leave a
// processor to the others where there is more than one.
var slowTurns = make(chan struct{}, max(runtime.GOMAXPROCS(0)-1, 1))

// evaluate tries to make do with few steps. A check that needs more waits until
// it is its turn.
func (s *Schema) evaluate(ctx context.Context, value any, size int) (findings, error) {
	size = max(size, count(value))
	steps := allowance(size)
	if size <= quickSteps {
		if found, done := s.with(s.quick, value, min(steps, quickSteps)); done {
			return found, nil
		}
	}
	select {
	case slowTurns <- struct{}{}:
		defer func() { <-slowTurns }()
	case <-ctx.Done():
		return findings{}, context.Cause(ctx)
	}
	found, done := s.with(s.slow, value, steps)
	if !done {
		found.add(nil, tooManySteps)
	}
	return found, nil
}

const tooManySteps = "takes too many steps to check against the schema of the job type: send less at once, or have the handler declare a simpler schema"

// with evaluates in one of the places, once one is free. Every check is bounded.
func (s *Schema) with(places chan *evaluator, value any, steps int) (found findings, done bool) {
	e := <-places
	defer func() { places <- e }()
	if e == nil {
		var err error
		if e, err = newEvaluator(s.text); err != nil {
			return findings{found: []finding{{message: "cannot be checked"}}}, true // it has compiled before
		}
	}
	return e.evaluate(value, steps)
}
