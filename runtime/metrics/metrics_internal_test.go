package metrics

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestOnlyDeclaredTypesAreLabels(t *testing.T) {
	reader := sdk.NewManualReader()
	measured, err := New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	require.NoError(t, err)
	measured.Declare([]job.TypeSpec{{Type: "A"}, {Type: "B"}})
	measured.Declare([]job.TypeSpec{{Type: "B"}})
	for _, jobType := range []string{"A", "made up 1", "made up 2", "B", "A"} {
		measured.Settled(jobType, job.Success, 1)
	}
	require.Equal(t, "B", measured.TypeLabel("B"))
	require.Equal(t, "other", measured.TypeLabel("made up 1"))

	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	counted := make(map[string]int64)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "holdfast.attempts" {
			for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
				jobType, _ := point.Attributes.Value("job_type")
				counted[jobType.AsString()] += point.Value
			}
		}
	}
	require.Equal(t, map[string]int64{"A": 2, "B": 1, "other": 2}, counted)
}

// whatAJobCosts is every measurement that is made for each job.
func whatAJobCosts(t *Metrics, claimed []job.Claimed) {
	t.Claimed(claimed)
	t.Ran("A", job.Success, time.Millisecond)
	t.Settled("A", job.Success, 1)
}

func measuredBySDK(t testing.TB) *Metrics {
	t.Helper()
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	measured, err := New(provider.Meter("test"))
	require.NoError(t, err)
	measured.Declare([]job.TypeSpec{{Type: "A"}})
	return measured
}

func TestMeasuringAJobAllocatesNothing(t *testing.T) {
	measured := measuredBySDK(t)
	claimed := []job.Claimed{{Type: "A", RunAt: time.Unix(0, 0), ClaimedAt: time.Unix(1, 0)}}
	require.Zero(t, testing.AllocsPerRun(1000, func() { whatAJobCosts(measured, claimed) }))
}

// BenchmarkMetrics is what measuring adds to each job: without a meter, with
// the SDK's, and, for comparison, with labels made anew for each job.
func BenchmarkMetrics(b *testing.B) {
	claimed := []job.Claimed{{Type: "A", RunAt: time.Unix(0, 0), ClaimedAt: time.Unix(1, 0)}}
	none, err := New(noop.Meter{})
	require.NoError(b, err)
	some := measuredBySDK(b)
	for name, measure := range map[string]func(){
		"off": func() { whatAJobCosts(none, claimed) },
		"on":  func() { whatAJobCosts(some, claimed) },
		"labels made anew": func() {
			ctx, jobType := context.Background(), attribute.String("job_type", "A")
			outcome := attribute.String("outcome", string(job.Success))
			some.claimLatency.Record(ctx, 1, metric.WithAttributes(jobType))
			some.attemptDuration.Record(ctx, 1, metric.WithAttributes(jobType, outcome))
			some.attempts.Add(ctx, 1, metric.WithAttributes(jobType, outcome))
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				measure()
			}
		})
	}
}
