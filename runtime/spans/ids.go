package spans

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// attemptID is the id of an attempt's span, made of job and fence. So it is known to the
// worker before there is a span, to the worker of the next attempt, and to the reaper
// when the worker is gone. It is as unlikely to collide as a random id.
func attemptID(id job.ID, fence int64) trace.SpanID {
	hash := fnv.New64a()
	_, _ = hash.Write(id[:])
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(fence)))
	return trace.SpanID(binary.BigEndian.AppendUint64(nil, max(hash.Sum64(), 1)))
}

// IDs makes the ids of spans. The provider of the tracer must use it: this package sets
// the ids of some spans. All others are random.
type IDs struct{}

type (
	spanIDKey  struct{}
	sampledKey struct{}
)

// withID sets the id of the next span that is started with the context.
func withID(ctx context.Context, id trace.SpanID) context.Context {
	return context.WithValue(ctx, spanIDKey{}, id)
}

// NewIDs implements the SDK's IDGenerator.
func (ids IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	var id trace.TraceID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id, ids.NewSpanID(ctx, id)
}

// NewSpanID implements the SDK's IDGenerator.
func (IDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(spanIDKey{}).(trace.SpanID)
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// withSampling makes a trace that is begun with the context sampled.
func withSampling(ctx context.Context) context.Context {
	return context.WithValue(ctx, sampledKey{}, true)
}

// Sampled returns true if a trace that is begun with the context must be sampled whatever
// the ratio is, because its request is. The sampler of the tracer must ask it.
func Sampled(ctx context.Context) bool { return ctx.Value(sampledKey{}) != nil }
