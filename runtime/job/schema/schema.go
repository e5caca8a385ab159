// Package schema checks payloads against the JSON Schemas that handlers
// declare. It reads nothing but what it is given: a schema that refers to
// anything outside of itself does not compile.
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
	// quick and slow are the places for evaluators, which serve one check at a
	// time. They are made when they are needed: a place can hold nil.
	quick, slow chan *evaluator
}

// Compile compiles a schema of draft 2020-12, or of the earlier draft that its
// $schema names. Formats are checked, not only noted; patterns are those of
// Go's regexp package. References may lead to places in the schema and to the
// metaschemas of the drafts, nowhere else. The error says which place of the
// schema is wrong.
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

// Check returns what is wrong with a payload, in the order of the places, at
// most MaxViolations; nil when it fits. A payload that is a JSON text in a
// string is read as handlers read it: as that text, where the schema takes no
// string. Places are then those in the text.
//
// A check that takes long waits until others that do have ended, see
// CheckWithin.
func (s *Schema) Check(payload json.RawMessage) []Violation {
	found, _ := s.check(context.Background(), payload) // nothing else ends it
	return found
}

// CheckWithin is Check for many clients: those whose checks take long wait for
// each other, and the others do not wait for them. It returns ErrBusy when too
// many wait, and the error of a context that ends meanwhile.
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
