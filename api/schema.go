package api

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

// maxSchemas bounds how many compiled schemas are kept. Beyond it any other
// makes room.
const maxSchemas = 1000

// schemas checks payloads against what handlers have declared. Each schema is
// compiled once, and again when its text has changed.
type schemas struct {
	log    *slog.Logger
	mu     sync.Mutex
	byType map[string]*declaredSchema
}

// declaredSchema is a schema as a job type declared it.
type declaredSchema struct {
	text json.RawMessage
	// compiled returns nil for a schema that does not compile.
	compiled func() *schema.Schema
}

func newSchemas(log *slog.Logger) *schemas {
	return &schemas{log: log, byType: make(map[string]*declaredSchema)}
}

// check returns what is wrong with a payload, at most maxErrors. A schema that
// cannot be used is the handler's mistake, not the client's: what it would say
// is left to the handler, which checks once more in any case.
//
// It returns an error when too many payloads that take long to check wait.
func (s *schemas) check(ctx context.Context, spec job.TypeSpec, payload json.RawMessage) ([]v1.Mistake, error) {
	if len(spec.Schema) == 0 {
		return nil, nil
	}
	compiled := s.of(spec)
	if compiled == nil {
		return nil, nil
	}
	found, err := compiled.CheckWithin(ctx, payload)
	if err != nil {
		s.log.DebugContext(ctx, "payload not checked", slog.String("job_type", spec.Type), slog.Any("error", err))
		return nil, unavailable("too many payloads are being checked against schemas that take long; try again")
	}
	var mistakes []v1.Mistake
	for _, violation := range found {
		mistakes = append(mistakes, at(pointer(placeInPayload(violation.Pointer)...), violation.Message))
	}
	return mistakes[:min(len(mistakes), maxErrors)], nil
}

// of returns the compiled schema of a type. Whoever needs it first compiles it
// and the others wait; those of other types do not.
func (s *schemas) of(spec job.TypeSpec) *schema.Schema {
	s.mu.Lock()
	known, found := s.byType[spec.Type]
	if !found || !bytes.Equal(known.text, spec.Schema) {
		known = &declaredSchema{text: spec.Schema, compiled: sync.OnceValue(func() *schema.Schema { return s.compile(spec) })}
		s.makeRoom(found)
		s.byType[spec.Type] = known
	}
	s.mu.Unlock()
	return known.compiled()
}

func (s *schemas) makeRoom(found bool) {
	if found || len(s.byType) < maxSchemas {
		return
	}
	for other := range s.byType {
		delete(s.byType, other)
		return
	}
}

func (s *schemas) compile(spec job.TypeSpec) *schema.Schema {
	compiled, err := schema.Compile(spec.Schema)
	if err != nil {
		s.log.Warn("the schema of a job type cannot be used: its payloads are accepted as they are",
			slog.String("job_type", spec.Type), slog.String("plugin", spec.Plugin), slog.Any("error", err))
		return nil
	}
	return compiled
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// placeInPayload takes a JSON Pointer into the payload to pieces, and to the
// payload's own place in a submission.
func placeInPayload(pointer string) []string {
	place := []string{"payload"}
	if pointer == "" {
		return place
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		place = append(place, unescapePointer.Replace(step))
	}
	return place
}
