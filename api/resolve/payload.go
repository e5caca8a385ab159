package resolve

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

// maxSchemas is how many compiled schemas are kept. One more replaces an arbitrary
// one.
const maxSchemas = 1000

// payloads checks payloads against the schemas that handlers declare. A schema is
// compiled once, and again when its text changes.
type payloads struct {
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

func newPayloads(log *slog.Logger) *payloads {
	return &payloads{log: log, byType: make(map[string]*declaredSchema)}
}

// check returns the mistakes in a payload, at most submission.MaxMistakes. A schema
// that cannot be used accepts everything: it is the handler's mistake, not the
// client's, and the handler checks the payload again. check returns an error when too
// many slow checks are waiting.
func (p *payloads) check(ctx context.Context, spec job.TypeSpec, payload json.RawMessage) ([]v1.Mistake, error) {
	if len(spec.Schema) == 0 {
		return nil, nil
	}
	compiled := p.of(spec)
	if compiled == nil {
		return nil, nil
	}
	violations, err := compiled.CheckWithin(ctx, payload)
	if err != nil {
		p.log.DebugContext(ctx, "payload not checked", slog.String("job_type", spec.Type), slog.Any("error", err))
		return nil, v1.Unavailable("too many slow checks of payloads are waiting; try again")
	}
	var mistakes []v1.Mistake
	for _, violation := range violations {
		mistakes = append(mistakes, mistake(submission.Pointer(placeInPayload(violation.Pointer)...), violation.Message))
	}
	return mistakes[:min(len(mistakes), submission.MaxMistakes)], nil
}

// of returns the compiled schema of a type. The first caller compiles it, and the
// others wait; callers for other types do not.
func (p *payloads) of(spec job.TypeSpec) *schema.Schema {
	p.mu.Lock()
	known, found := p.byType[spec.Type]
	if !found || !bytes.Equal(known.text, spec.Schema) {
		known = &declaredSchema{text: spec.Schema, compiled: sync.OnceValue(func() *schema.Schema { return p.compile(spec) })}
		p.makeRoom(found)
		p.byType[spec.Type] = known
	}
	p.mu.Unlock()
	return known.compiled()
}

func (p *payloads) makeRoom(found bool) {
	if found || len(p.byType) < maxSchemas {
		return
	}
	for other := range p.byType {
		delete(p.byType, other)
		return
	}
}

func (p *payloads) compile(spec job.TypeSpec) *schema.Schema {
	compiled, err := schema.Compile(spec.Schema)
	if err != nil {
		p.log.Warn("the schema of a job type cannot be used: its payloads are accepted as they are",
			slog.String("job_type", spec.Type), slog.String("plugin", spec.Plugin), slog.Any("error", err))
		return nil
	}
	return compiled
}

// placeInPayload splits a JSON Pointer into the payload. The result is a path in the
// submission.
func placeInPayload(pointer string) []string {
	steps, _ := job.ParsePointer(pointer)
	return append([]string{"payload"}, steps...)
}
