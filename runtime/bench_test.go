package runtime_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	googleuuid "github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// BenchmarkJobs works off b.N jobs that are ready: claim, a handler in this
// very process that does nothing, settle. The database gives up durability
// (pgtest); the figure is for comparing one version of the code with
// another, not with other systems.
func BenchmarkJobs(b *testing.B) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	for _, c := range []struct {
		name   string
		meter  metric.Meter
		spans  spans.Exporter
		parent string
	}{
		{name: "unmeasured", meter: noop.Meter{}},
		{name: "measured", meter: sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader())).Meter("bench")},
		{name: "not sampled", meter: noop.Meter{}, spans: forgetful{}, parent: parent + "0"},
		{name: "traced", meter: noop.Meter{}, spans: forgetful{}, parent: parent + "1"},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkJobs(b, c.meter, c.spans, job.Trace{Parent: c.parent}) })
	}
}

// forgetful does nothing with spans.
type forgetful struct{}

func (forgetful) Export([]byte)              {}
func (forgetful) Sampled(trace.TraceID) bool { return true }

func benchmarkJobs(b *testing.B, meter metric.Meter, exporter spans.Exporter, carried job.Trace) {
	b.Helper()
	ledger := storetest.Open(b, pgtest.URL(b), 10)
	for left := b.N; left > 0; left -= 500 {
		batch := make([]job.Submission, min(left, 500))
		for i := range batch {
			batch[i] = job.Submission{
				ID: job.ID(googleuuid.Must(googleuuid.NewV7())), Type: "NOTHING", Tenant: job.DefaultTenant,
				Payload: []byte(`{"to":"ada@example.com"}`), MaxAttempts: 3, Timeout: time.Minute,
				Trace: carried,
			}
		}
		for _, submitted := range ledger.Submit(b.Context(), batch) {
			require.NoError(b, submitted.Err)
		}
	}
	handlers := &instant{changed: make(chan struct{}, 1), slots: 1000, left: int64(b.N), done: make(chan struct{})}
	worker, err := runtime.New(runtime.Config{
		Config: jobs.Config{
			PollInterval: time.Second, Log: slog.New(slog.DiscardHandler), Meter: meter, Spans: exporter,
			Resolve: func(spec job.TypeSpec) job.TypeSpec {
				spec.Retry = job.DefaultRetryPolicy()
				return spec
			},
		},
		Worker: runtime.NewWorker("bench", job.AllRoles()), Concurrency: 1000, Lease: 30 * time.Second, JobLog: runtime.LogNone,
		DrainTimeout: time.Minute, KillGrace: time.Second,
		CrashPolicy: runtime.Expire, MaxCrashes: func(string) int { return job.DefaultMaxCrashes },
	}, ledger, handlers)
	require.NoError(b, err)
	require.NoError(b, worker.Prepare(b.Context()))

	ctx, drain := context.WithCancel(b.Context())
	var ran sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	ran.Go(func() { worker.Run(ctx, b.Context()) })
	<-handlers.done
	drain()
	ran.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// instant is a supervisor whose handlers succeed at once.
type instant struct {
	changed chan struct{}
	slots   int64
	busy    atomic.Int64
	left    int64
	ended   atomic.Int64
	done    chan struct{}
}

func (i *instant) Pools() []job.Pool {
	return []job.Pool{{Plugin: "instant", Types: []string{"NOTHING"}, Free: int(i.slots - i.busy.Load()), Slots: int(i.slots)}}
}

func (i *instant) Types() []job.TypeSpec    { return nil }
func (i *instant) Changed() <-chan struct{} { return i.changed }

func (i *instant) Start(_ string, _ job.Assignment, r job.Reporter) (job.Run, error) {
	i.busy.Add(1)
	go func() {
		i.busy.Add(-1)
		r.Finished(job.Outcome{Kind: job.Success})
		select {
		case i.changed <- struct{}{}:
		default:
		}
		if i.ended.Add(1) == i.left {
			close(i.done)
		}
	}()
	return noRun{}, nil
}

type noRun struct{}

func (noRun) Cancel(job.CancelReason) {}
func (noRun) Kill()                   {}
func (noRun) Extend(time.Duration)    {}
