package host

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// refill starts the next attempt when one ends.
type refill struct {
	h    *Host
	left *atomic.Int64
	done chan struct{}
}

func (r *refill) Progress(json.RawMessage) <-chan struct{}   { return nil }
func (r *refill) Checkpoint(json.RawMessage) <-chan struct{} { return nil }
func (r *refill) Log(job.LogLine)                            {}

func (r *refill) Began() {}

func (r *refill) Finished(job.Outcome) {
	switch left := r.left.Add(-1); {
	case left >= 100:
		_, _ = r.h.Start("good", assignment(`{"n":1}`), r)
	case left == 0:
		close(r.done)
	}
}

// BenchmarkAttempt measures one attempt from start to outcome, with 100 attempts in
// flight, and the processor time that the host uses for it.
func BenchmarkAttempt(b *testing.B) {
	dir := b.TempDir()
	config := misbehaving("good", "-concurrency", "100")
	h, err := Start(b.Context(), testSettings(dir, io.Discard), []Config{config})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Close(context.Background()) }()
	for len(h.Pools()) == 0 {
		<-h.Changed()
	}
	r := &refill{h: h, left: &atomic.Int64{}, done: make(chan struct{})}
	n := max(b.N, 100)
	r.left.Store(int64(n))
	before := processorTime()
	b.ResetTimer()
	for range 100 {
		_, _ = h.Start("good", assignment(`{"n":1}`), r)
	}
	<-r.done
	b.StopTimer()
	b.ReportMetric(float64(processorTime()-before)/1e3/float64(n), "cpu-µs/op")
}

// processorTime is what this process has used, in nanoseconds.
func processorTime() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}
