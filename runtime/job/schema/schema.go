// Package schema checks payloads against the JSON Schemas that handlers
// declare. It reads nothing but what it is given: a schema that refers to
// anything outside of itself does not compile.
package schema

import (
	"encoding/json"
	"errors"
	"runtime"
)

// MaxBytes bounds the text of a schema.
const MaxBytes = 256 << 10

// Schema is a compiled JSON Schema. Any number of goroutines may use it.
type Schema struct {
	text json.RawMessage
	// evaluators are the places for evaluators, which serve one check at a
	// time. They are made when they are needed: a place can hold nil.
	evaluators chan *evaluator
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
	// More could not run at the same time anyway, and each can need memory in
	// proportion to the payload.
	places := runtime.GOMAXPROCS(0)
	s := &Schema{text: text, evaluators: make(chan *evaluator, places)}
	s.evaluators <- first
	for range places - 1 {
		s.evaluators <- nil
	}
	return s, nil
}

// Check returns what is wrong with a payload, in the order of the places, at
// most MaxViolations; nil when it fits. A payload that is a JSON text in a
// string is read as handlers read it: as that text, where the schema takes no
// string. Places are then those in the text.
func (s *Schema) Check(payload json.RawMessage) []Violation {
	value, err := read(payload)
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	found := s.evaluate(value)
	text, isText := value.(string)
	if !isText || !found.wrongType {
		return found.violations()
	}
	inner, err := read([]byte(text))
	switch {
	case errors.Is(err, errNotJSON):
		return found.violations()
	case err != nil:
		return []Violation{{Message: err.Error()}}
	}
	return s.evaluate(inner).violations()
}

// evaluate waits for a free place when as many checks are under way as there
// are processors. Every check is bounded.
func (s *Schema) evaluate(value any) findings {
	e := <-s.evaluators
	defer func() { s.evaluators <- e }()
	if e == nil {
		var err error
		if e, err = newEvaluator(s.text); err != nil {
			return findings{found: []finding{{message: "cannot be checked"}}} // it has compiled before
		}
	}
	return e.evaluate(value)
}
