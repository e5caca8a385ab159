package meter

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/tracing"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// handlers is a supervisor whose handlers succeed at once.
type handlers struct{}

func (handlers) Pools() []job.Pool {
	return []job.Pool{{Plugin: "p", Types: []string{"MAIL"}, Free: 5, Slots: 5}}
}

func (handlers) Types() []job.TypeSpec    { return []job.TypeSpec{{Type: "MAIL", Plugin: "p"}} }
func (handlers) Changed() <-chan struct{} { return nil }

func (handlers) Start(_ string, _ job.Assignment, r job.Reporter) (job.Run, error) {
	go r.Finished(job.Outcome{Kind: job.Success})
	return ended{}, nil
}

type ended struct{}

func (ended) Cancel(job.CancelReason) {}
func (ended) Kill()                   {}
func (ended) Extend(time.Duration)    {}

// everything runs a job in a worker on a real database, and returns meters in
// which every metric has a value.
func everything(t testing.TB) *Meters {
	t.Helper()
	url := pgtest.URL(t)
	ledger, err := store.Open(t.Context(), store.Config{
		URL: url, MaxConnections: 4, Replica: postgres.ReplicaConfig{URL: url}, // nobody follows it
	})
	require.NoError(t, err)
	t.Cleanup(ledger.Close)
	m := newMeters(t)
	traces, err := tracing.Start(t.Context(), tracing.Config{
		Target: tracing.Target{Endpoint: "http://127.0.0.1:1", Protocol: tracing.HTTP},
		Worker: "test", Meter: m.Meter(), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	require.NoError(t, traces.Close(t.Context()))
	worker, err := runtime.New(runtime.Config{
		Config: jobs.Config{
			PollInterval: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler), Meter: m.Meter(),
			Resolve: func(spec job.TypeSpec) job.TypeSpec {
				spec.MaxAttempts, spec.Timeout, spec.Retry = 1, time.Minute, job.DefaultRetryPolicy()
				return spec
			},
		},
		Worker: runtime.NewWorker("test", job.AllRoles()), Concurrency: 5, Lease: 10 * time.Second, JobLog: runtime.LogNone,
		DrainTimeout: time.Minute, KillGrace: time.Second,
		CrashPolicy: runtime.Expire, MaxCrashes: func(string) int { return job.DefaultMaxCrashes },
	}, ledger, handlers{})
	require.NoError(t, err)
	require.NoError(t, worker.Prepare(t.Context()))
	require.NoError(t, m.Watch(Sources{
		Plugins: somePlugins, Pools: ledger.Stats, Replica: someReplica, TypeLabel: worker.Metrics.TypeLabel,
		Ledger: func(context.Context, time.Duration) (v1.Metrics, error) { return someMetrics(), nil },
	}))
	m.Request("/jobs", "POST", 202, time.Millisecond)

	ctx, drain := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		worker.Run(ctx, t.Context())
	}()
	receipt, err := worker.Submit(t.Context(), job.Submission{
		ID: job.ID(uuid.Must(uuid.NewV7())), Type: "MAIL", Tenant: job.DefaultTenant,
		Payload: []byte(`{}`), MaxAttempts: 1, Timeout: time.Minute, Terms: job.Terms{ConcurrencyKey: "tenant-7"},
	})
	require.NoError(t, err)
	waiting, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	view, err := worker.Await(waiting, receipt.ID)
	require.NoError(t, err)
	require.Equal(t, job.Succeeded, view.State)
	worker.Lapsed([]job.Lapsed{{ID: job.ID(uuid.Must(uuid.NewV7())), Type: "MAIL"}}, time.Now())
	worker.Metrics.TickLag(time.Millisecond)
	require.NoError(t, worker.Metrics.ObserveStreams(func() int { return 1 }))
	drain()
	<-done
	return m
}

// row is a line of the table in the documentation.
type row struct{ name, kind, unit, labels, meaning string }

func table(t testing.TB) map[string]row {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/reference/telemetry.md")
	require.NoError(t, err)
	rows := make(map[string]row)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[0], " `holdfast_") {
			continue
		}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), "`", "")
		}
		rows[cells[0]] = row{cells[0], cells[1], cells[2], cells[3], cells[4]}
	}
	return rows
}

// unit is what a metric's name says that it is measured in.
func unit(name string) string {
	if strings.HasSuffix(strings.TrimSuffix(name, "_total"), "_seconds") {
		return "s"
	}
	return ""
}

func labels(family *dto.MetricFamily) string {
	names := make(map[string]bool)
	var list []string
	for _, sample := range family.GetMetric() {
		for _, label := range sample.GetLabel() {
			if !names[label.GetName()] {
				names[label.GetName()] = true
				list = append(list, label.GetName())
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func TestTheTableInTheDocumentationIsWhatIsServed(t *testing.T) {
	served := make(map[string]row)
	for name, family := range families(t, everything(t)) {
		if strings.HasPrefix(name, "holdfast_") {
			served[name] = row{name, strings.ToLower(family.GetType().String()), unit(name), labels(family), family.GetHelp()}
		}
	}
	require.Equal(t, table(t), served)
}

func TestTheQueriesInTheDocumentationNameWhatIsServed(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/telemetry.md")
	require.NoError(t, err)
	known, queries := table(t), 0
	parts := strings.Split(string(page), "```")
	for i := 1; i < len(parts); i += 2 {
		query, isQuery := strings.CutPrefix(parts[i], "promql\n")
		if !isQuery {
			continue
		}
		queries++
		for _, name := range strings.FieldsFunc(query, func(r rune) bool {
			return !(r == '_' || 'a' <= r && r <= 'z')
		}) {
			if !strings.HasPrefix(name, "holdfast_") {
				continue
			}
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
			require.Contains(t, known, base, query)
		}
	}
	require.GreaterOrEqual(t, queries, 5)
}

// values are those of a label that the metric was served with.
func values(family *dto.MetricFamily, name string) []string {
	seen := make(map[string]bool)
	for _, sample := range family.GetMetric() {
		for _, label := range sample.GetLabel() {
			if label.GetName() == name {
				seen[label.GetValue()] = true
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

func TestTheLabelsInTheDocumentationHaveTheValuesThatAreServed(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/telemetry.md")
	require.NoError(t, err)
	_, labels, found := strings.Cut(string(page), "### Labels")
	require.True(t, found)
	labels, _, _ = strings.Cut(labels, "\n#")
	documented := make(map[string][]string)
	for line := range strings.Lines(labels) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 2 {
			documented[strings.TrimSpace(cells[0])] = strings.Split(strings.Trim(cells[1], " `"), "`, `")
		}
	}
	var outcomes []string
	for _, kind := range job.OutcomeKinds() {
		outcomes = append(outcomes, string(kind))
	}
	require.ElementsMatch(t, outcomes, documented["`outcome`"])
	served := families(t, everything(t))
	for label, metric := range map[string]string{
		"`operation`": "holdfast_database_errors_total",
		"`reason` of `holdfast_lease_losses_total`":  "holdfast_lease_losses_total",
		"`reason` of `holdfast_jobs_reaped_total`":   "holdfast_jobs_reaped_total",
		"`reason` of `holdfast_spans_dropped_total`": "holdfast_spans_dropped_total",
		"`hint`":                                     "holdfast_hints_sent_total",
		"`state` of `holdfast_jobs`":                 "holdfast_jobs",
		"`state` of `holdfast_queue_jobs`":           "holdfast_queue_jobs",
		"`reason` of `holdfast_queue_waiting`":       "holdfast_queue_waiting",
		"`state` of `holdfast_pool_connections`":     "holdfast_pool_connections",
		"`pool`":                                     "holdfast_pool_connections",
		"`result` of `holdfast_replica_reads_total`": "holdfast_replica_reads_total",
	} {
		name, _, _ := strings.Cut(strings.Trim(label, "`"), "`")
		require.ElementsMatch(t, documented[label], values(served[metric], name), label)
	}
}

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(text(t, everything(t)))).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestOpenMetricsIsSpokenToWhoeverAsksForIt(t *testing.T) {
	page := text(t, everything(t), "Accept: application/openmetrics-text; version=1.0.0")
	require.True(t, strings.HasSuffix(page, "# EOF\n"))
	require.Contains(t, page, "# TYPE holdfast_attempts counter\n")
}

func TestMeasuringLeavesNoGoroutine(t *testing.T) {
	present := goleak.IgnoreCurrent()
	m := watching(t, func(context.Context, time.Duration) (v1.Metrics, error) { return someMetrics(), nil })
	text(t, m)
	require.NoError(t, goleak.Find(present))
}
