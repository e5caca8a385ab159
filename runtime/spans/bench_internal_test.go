package spans

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// forgetful does nothing with spans.
type forgetful struct{ bytes int }

func (f *forgetful) Export(span []byte)       { f.bytes += len(span) }
func (*forgetful) Sampled(trace.TraceID) bool { return true }

// BenchmarkAttempt makes the spans of a job that succeeds at once.
func BenchmarkAttempt(b *testing.B) {
	to := new(forgetful)
	tracer := New(to)
	at := time.Now()
	one := claimed(at)
	one.Last, one.Tenant, one.Fence = nil, "default", 1
	end := settled(job.Success, job.Succeeded)
	end.Plugin, end.Version = "mail", "1.4.0"
	b.ReportAllocs()
	for b.Loop() {
		c := one
		a := tracer.Claimed(&c, "worker-1/0199a1b2", at, at)
		a.Began(at)
		a.Ended(at)
		a.Settled(end, at)
	}
	b.ReportMetric(float64(to.bytes)/float64(b.N), "wire-B/op")
}
