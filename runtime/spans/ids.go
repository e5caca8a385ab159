package spans

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// attemptID is the id of the span of an attempt. Everybody who knows job and
// fence knows it: the worker before there is a span, the worker of the next attempt,
// and the reaper when the worker is gone. That it differs from the ids of
// all other spans is as likely as for random ones.
func attemptID(id job.ID, fence int64) trace.SpanID {
	hash := fnv.New64a()
	_, _ = hash.Write(id[:])
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(fence)))
	return trace.SpanID(binary.BigEndian.AppendUint64(nil, max(hash.Sum64(), 1)))
}

// IDs makes the ids of spans. The provider of the tracer must use it, since it
// lets this package say which id a span is to have; all others are random.
type IDs struct{}

type (
	spanIDKey  struct{}
	sampledKey struct{}
)

// withID has the next span that is started with the context have the id.
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

// withSampling has a trace that is begun with the context be sampled.
func withSampling(ctx context.Context) context.Context {
	return context.WithValue(ctx, sampledKey{}, true)
}

// Sampled reports whether a trace that is begun with the context is to be
// sampled whatever the ratio is: the request it belongs to is. The sampler of the
// tracer must ask.
func Sampled(ctx context.Context) bool { return ctx.Value(sampledKey{}) != nil }
