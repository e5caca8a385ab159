package spans

import (
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

// newTraceID returns a random id.
func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

// newSpanID returns a random id.
func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
