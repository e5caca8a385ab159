package schema

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// ErrBusy means that too many long checks are under way.
var ErrBusy = errors.New("too many payloads that take long to check")

const (
	// quickSteps is what a check may take without waiting for a turn: a millisecond or two.
	quickSteps = 2000
	// turnWithin is how long a longer check waits for its turn.
	turnWithin = 10 * time.Second
)

// quickAtOnce bounds the short checks of a schema that run at once. More would not be
// faster, and each can need memory in proportion to the payload.
var quickAtOnce = runtime.GOMAXPROCS(0)

// slowTurns are held by long checks, of all schemas together. One processor is left to
// the rest of the program if there is more than one.
var slowTurns = make(chan struct{}, max(runtime.GOMAXPROCS(0)-1, 1))

// evaluate tries with few steps first. A check that needs more waits for its turn.
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

const tooManySteps = "takes too many steps to check against the schema of the job type: send less at once, or let the handler declare a simpler schema"

// with evaluates with an evaluator of the pool, once one is free. Every check is bounded.
func (s *Schema) with(pool chan *evaluator, value any, steps int) (found findings, done bool) {
	e := <-pool
	defer func() { pool <- e }()
	if e == nil {
		var err error
		if e, err = newEvaluator(s.text); err != nil {
			return findings{found: []finding{{message: "cannot be checked"}}}, true // it has compiled before
		}
	}
	return e.evaluate(value, steps)
}
