package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Upper bounds of histogram buckets: of what lasts as long as a handler or a
// queue, in seconds; of what lasts as long as a statement, in seconds; and of
// batches.
var (
	jobSeconds = []float64{
		0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
	}
	statementSeconds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	batchSizes       = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500}
)

// telemetry measures what the loops do. Nothing in it allocates memory for a
// job: every set of labels is made once.
//
// A job type is named only if a plugin has declared it, and all others are
// one, so that whoever submits jobs cannot make up labels.
type telemetry struct {
	attempts        metric.Int64Counter
	attemptDuration metric.Float64Histogram
	claimLatency    metric.Float64Histogram
	batchDuration   metric.Float64Histogram
	batchSize       metric.Int64Histogram
	databaseErrors  metric.Int64Counter
	leaseLosses     metric.Int64Counter
	reaped          metric.Int64Counter
	hintsSent       metric.Int64Counter
	hintsHeard      metric.Int64Counter

	declaring sync.Mutex
	types     atomic.Pointer[map[string]*typeLabels]
}

// newTelemetry declares the instruments on the meter, and begins the counters
// at zero: what was never counted cannot be told from what is not measured.
func newTelemetry(meter metric.Meter, held *holdings) (*telemetry, error) {
	i := instruments{meter: meter}
	t := &telemetry{
		attempts: i.counter("holdfast.attempts", "{attempt}",
			"Attempts whose end this worker wrote to the ledger."),
		attemptDuration: i.histogram("holdfast.attempt.duration", jobSeconds,
			"How long handlers ran, from their start until they were done."),
		claimLatency: i.histogram("holdfast.claim.latency", jobSeconds,
			"How long claimed jobs had been due, by the clock of the database."),
		batchDuration: i.histogram("holdfast.batch.duration", statementSeconds,
			"How long the database took for a batch, failed tries included."),
		databaseErrors: i.counter("holdfast.database.errors", "{error}",
			"Tries that the database did not answer or refused for the moment."),
		leaseLosses: i.counter("holdfast.lease.losses", "{lease}",
			"Handlers stopped because their lease was not proven, and ends refused because the lease was lost."),
		reaped: i.counter("holdfast.jobs.reaped", "{job}",
			"Jobs taken over from workers that let their lease expire."),
		hintsSent:  i.counter("holdfast.hints.sent", "{hint}", "Hints sent to other processes."),
		hintsHeard: i.counter("holdfast.hints.heard", "{hint}", "Hints heard, our own included."),
	}
	t.batchSize = i.sizes("holdfast.batch.size", batchSizes, "How many jobs, leases or notes a batch had.")
	i.gauge("holdfast.leases.held", "{lease}",
		"Leases this worker holds: of jobs that run, and of those that wait for a slot or to be settled.",
		func() int64 {
			_, leases := held.counts()
			return int64(leases)
		})
	if i.err != nil {
		return nil, i.err
	}
	t.types.Store(&map[string]*typeLabels{})
	for _, o := range operations {
		t.databaseErrors.Add(context.Background(), 0, o.add...)
	}
	for _, loss := range []labels{lossUnproven, lossAtSettle} {
		t.leaseLosses.Add(context.Background(), 0, loss.add...)
	}
	for _, cause := range reapCauses {
		t.reaped.Add(context.Background(), 0, cause.add...)
	}
	for _, hint := range hintLabels {
		t.hintsSent.Add(context.Background(), 0, hint.add...)
		t.hintsHeard.Add(context.Background(), 0, hint.add...)
	}
	return t, nil
}

// declare makes labels for types that are new.
func (t *telemetry) declare(specs []job.TypeSpec) {
	t.declaring.Lock()
	defer t.declaring.Unlock()
	known := *t.types.Load()
	grown := make(map[string]*typeLabels, len(known)+len(specs))
	for name, labels := range known {
		grown[name] = labels
	}
	for _, spec := range specs {
		if grown[spec.Type] == nil {
			grown[spec.Type] = newTypeLabels(spec.Type)
		}
	}
	if len(grown) > len(known) {
		t.types.Store(&grown)
	}
}

func (t *telemetry) labels(jobType string) *typeLabels {
	if labels := (*t.types.Load())[jobType]; labels != nil {
		return labels
	}
	return otherType
}

func (t *telemetry) claimed(jobs []job.Claimed) {
	for i := range jobs {
		latency := jobs[i].ClaimedAt.Sub(jobs[i].RunAt)
		t.claimLatency.Record(context.Background(), latency.Seconds(), t.labels(jobs[i].Type).all.record...)
	}
}

// ran counts a handler that is done, whatever becomes of its outcome.
func (t *telemetry) ran(jobType string, outcome job.OutcomeKind, took time.Duration) {
	t.attemptDuration.Record(context.Background(), took.Seconds(), t.labels(jobType).outcomes[outcome].record...)
}

// settled counts an attempt that has its row in the ledger.
func (t *telemetry) settled(jobType string, outcome job.OutcomeKind) {
	t.attempts.Add(context.Background(), 1, t.labels(jobType).outcomes[outcome].add...)
}

// batch measures one try that the database has answered, or has not.
func (t *telemetry) batch(o operation, size int, began time.Time, err error) {
	t.batchDuration.Record(context.Background(), time.Since(began).Seconds(), o.record...)
	if err == nil {
		t.batchSize.Record(context.Background(), int64(size), o.record...)
	}
	t.failed(o, err)
}

// failed counts an error that another try may cure.
func (t *telemetry) failed(o operation, err error) {
	if errors.Is(err, job.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.databaseErrors.Add(context.Background(), 1, o.add...)
	}
}

func (t *telemetry) lost(reason labels) { t.leaseLosses.Add(context.Background(), 1, reason.add...) }

func (t *telemetry) reapedFor(cause string) {
	t.reaped.Add(context.Background(), 1, reapCauses[cause].add...)
}

func (t *telemetry) sent(hint job.Hint, err error) {
	if err == nil {
		t.hintsSent.Add(context.Background(), 1, hintLabels[hint].add...)
	}
	t.failed(opHint, err)
}

func (t *telemetry) heard(hint job.Hint) {
	t.hintsHeard.Add(context.Background(), 1, hintLabels[hint].add...)
}

// TypeLabel is the job type itself if some plugin, of this process or another,
// has declared it, and else the one name for all that nobody has. It does not
// ask the database, and may be as late as the catalog is.
func (r *Runtime) TypeLabel(jobType string) string { return r.telemetry.labels(jobType).name }
