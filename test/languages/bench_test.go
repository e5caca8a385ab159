package languages

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
	"testing"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// inFlight is how many jobs the measured process runs at once.
const inFlight = 100

// BenchmarkNothing measures how many empty jobs one process runs in a second, as the
// supervisor sees it, without a database.
func BenchmarkNothing(b *testing.B) {
	for _, l := range languages {
		types := []string{"TEST"}
		if l.name == "python" {
			types = []string{"TEST", "LOOP"}
		}
		for _, jobType := range types {
			b.Run(l.name+"/"+jobType, func(b *testing.B) {
				installed, err := l.install()
				if err != nil {
					b.Skip(err)
				}
				measure(b, interpreted{l, installed}, jobType)
			})
		}
	}
}

func measure(b *testing.B, l interpreted, jobType string) {
	plugin := l.config()
	plugin.Concurrency = inFlight
	h, err := host.Start(b.Context(), settings(b.TempDir(), io.Discard), []host.Config{plugin})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Close(context.Background()) }()
	for len(h.Pools()) == 0 {
		<-h.Changed()
	}
	jobs := max(b.N, inFlight)
	r := &refill{start: func(r *refill) {
		_, _ = h.Start("test", assignment(do("echo"), func(a *job.Assignment) { a.Type = jobType }), r)
	}, done: make(chan struct{})}
	r.left.Store(int64(jobs))
	b.ResetTimer()
	for range inFlight {
		r.start(r)
	}
	<-r.done
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// refill starts the next attempt when one ends.
type refill struct {
	start func(*refill)
	left  atomic.Int64
	done  chan struct{}
}

func (r *refill) Progress(json.RawMessage) <-chan struct{}   { return nil }
func (r *refill) Checkpoint(json.RawMessage) <-chan struct{} { return nil }
func (r *refill) Log(job.LogLine)                            {}

func (r *refill) Began() {}

func (r *refill) Finished(outcome job.Outcome) {
	if outcome.Kind != job.Success {
		panic(outcome.Message)
	}
	switch left := r.left.Add(-1); {
	case left >= inFlight:
		r.start(r)
	case left == 0:
		close(r.done)
	}
}
