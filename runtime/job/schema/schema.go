// Package schema checks payloads against the JSON Schemas that handlers declare. It loads
// nothing: a schema that refers to anything outside of itself does not compile.
package schema

import (
	"context"
	"encoding/json"
	"errors"
)

// MaxBytes bounds the text of a schema.
const MaxBytes = 256 << 10

// Schema is a compiled JSON Schema. Any number of goroutines may use it.
type Schema struct {
	text json.RawMessage
	// quick and slow are pools of evaluators, each of which runs one check at a time.
	// Evaluators are made when they are needed; until then nil stands for them.
	quick, slow chan *evaluator
}

// Compile compiles a schema of draft 2020-12, or of the earlier draft that its $schema
// names. Formats are checked, not only noted. Patterns are those of Go's regexp package.
// References may lead to places in the schema and to the drafts' metaschemas, nowhere
// else. The error names the wrong place or reference in the schema.
func Compile(text json.RawMessage) (*Schema, error) {
	first, err := newEvaluator(text)
	if err != nil {
		return nil, err
	}
	s := &Schema{text: text, quick: make(chan *evaluator, quickAtOnce), slow: make(chan *evaluator, cap(slowTurns))}
	s.quick <- first
	for range quickAtOnce - 1 {
		s.quick <- nil
	}
	for range cap(slowTurns) {
		s.slow <- nil
	}
	return s, nil
}

// Check returns what is wrong with a payload, in the order of the places, at most
// MaxViolations; nil if nothing is. If the payload is a string and the schema allows no
// string, the string's content is checked as JSON, because handlers read it that way.
// Places are then places in that JSON.
//
// A long check waits for other long checks to end; see CheckWithin.
func (s *Schema) Check(payload json.RawMessage) []Violation {
	found, _ := s.check(context.Background(), payload) // which never ends
	return found
}

// CheckWithin is Check for many clients at once: long checks wait for each other, and
// short checks do not wait for them. It returns ErrBusy if a long check gets no turn in
// time, and the context's error if the context ends first.
func (s *Schema) CheckWithin(ctx context.Context, payload json.RawMessage) ([]Violation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, turnWithin, ErrBusy)
	defer cancel()
	return s.check(ctx, payload)
}

func (s *Schema) check(ctx context.Context, payload json.RawMessage) ([]Violation, error) {
	value, err := read(payload)
	if err != nil {
		return []Violation{{Message: err.Error()}}, nil
	}
	size := len(payload) / bytesForValue
	found, err := s.evaluate(ctx, value, size)
	if err != nil {
		return nil, err
	}
	text, isText := value.(string)
	if !isText || !found.wrongType {
		return found.violations(), nil
	}
	inner, err := read([]byte(text))
	switch {
	case errors.Is(err, errNotJSON):
		return found.violations(), nil
	case err != nil:
		return []Violation{{Message: err.Error()}}, nil
	}
	found, err = s.evaluate(ctx, inner, size)
	return found.violations(), err
}
