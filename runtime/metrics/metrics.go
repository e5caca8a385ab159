// Package metrics measures what the loops of a worker do.
// docs/reference/telemetry.md lists every metric.
//
// Nothing in it allocates memory for a job: every set of labels is made once.
package metrics

import (
	"context"
	"errors"
	"maps"
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
	batchSizes       = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// Metrics are the instruments of one worker. They are safe for concurrent use.
//
// A job type is a label only if a plugin has declared it; all others share one
// label. So whoever submits jobs cannot make up labels.
type Metrics struct {
	meter           metric.Meter
	attempts        metric.Int64Counter
	attemptDuration metric.Float64Histogram
	claimLatency    metric.Float64Histogram
	admissionWait   metric.Float64Histogram
	batchDuration   metric.Float64Histogram
	batchSize       metric.Int64Histogram
	databaseErrors  metric.Int64Counter
	leaseLosses     metric.Int64Counter
	reaped          metric.Int64Counter
	expired         metric.Int64Counter
	workflows       metric.Int64Counter
	disposed        metric.Int64Counter
	operated        metric.Int64Counter
	overdue         metric.Float64Gauge
	behind          metric.Float64Gauge
	ticks           metric.Int64Counter
	tickLag         metric.Float64Histogram
	callbacks       metric.Int64Counter
	events          metric.Int64Counter
	cutOff          metric.Int64Counter
	hintsSent       metric.Int64Counter
	hintsHeard      metric.Int64Counter

	declaring sync.Mutex
	types     atomic.Pointer[map[string]*typeLabels]
	other     *typeLabels
}

// New declares the instruments on the meter and starts the counters at zero:
// a counter without a value looks like one that is not measured.
func New(meter metric.Meter) (*Metrics, error) {
	var failed error
	counter := func(name, unit, meaning string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
		failed = errors.Join(failed, err)
		return made
	}
	seconds := func(name string, bounds []float64, meaning string) metric.Float64Histogram {
		made, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(meaning),
			metric.WithExplicitBucketBoundaries(bounds...))
		failed = errors.Join(failed, err)
		return made
	}
	m := &Metrics{
		meter: meter, other: newTypeLabels(otherType),
		attempts: counter("holdfast.attempts", "{attempt}",
			"Attempts whose end this worker wrote to the ledger."),
		attemptDuration: seconds("holdfast.attempt.duration", jobSeconds,
			"How long handlers ran, from their start until they were done."),
		claimLatency: seconds("holdfast.claim.latency", jobSeconds,
			"How long claimed jobs had been due, by the clock of the database."),
		admissionWait: seconds("holdfast.admission.wait", jobSeconds,
			"How long admitted jobs were parked, by the clock of the database."),
		batchDuration: seconds("holdfast.batch.duration", statementSeconds,
			"How long the database took for a batch, failed tries included."),
		databaseErrors: counter("holdfast.database.errors", "{error}",
			"Tries that the database did not answer or refused for the moment."),
		leaseLosses: counter("holdfast.lease.losses", "{lease}",
			"Handlers stopped because their lease was not proven, and ends refused because the lease was lost."),
		reaped: counter("holdfast.jobs.reaped", "{job}",
			"Jobs taken over from workers that let their lease expire."),
		expired: counter("holdfast.jobs.expired", "{job}",
			"Jobs that this worker canceled because they had not started by their time."),
		disposed: counter("holdfast.retention.jobs", "{job}",
			"Ended jobs that this worker deleted or blanked when their time was over, or erased on request."),
		operated: counter("holdfast.operations.jobs", "{job}",
			"Jobs that operations found, which this worker acted on or skipped."),
		ticks: counter("holdfast.schedule.ticks", "{tick}",
			"Ticks of schedules that this worker has dealt with, by what became of them."),
		tickLag: seconds("holdfast.schedule.lag", jobSeconds,
			"How late the jobs of ticks were made, by the clock of the database."),
		callbacks: counter("holdfast.callbacks", "{callback}",
			"Ends of jobs with a callback URL that this worker followed up: a delivery was made, failed to be made for now, or was given up."),
		events: counter("holdfast.events.recorded", "{event}",
			"Ends of jobs that this worker recorded as events."),
		cutOff: counter("holdfast.events.cut_off", "{stream}",
			"Streams of events that this orchestrator ended: the client accepted nothing for too long, or the events could not be read."),
		workflows: counter("holdfast.workflows.finished", "{workflow}",
			"Workflows whose last end this worker has followed up."),
		hintsSent:  counter("holdfast.hints.sent", "{hint}", "Hints sent to other processes."),
		hintsHeard: counter("holdfast.hints.heard", "{hint}", "Hints heard, our own included, except of awaited and of ended jobs."),
	}
	gauge := func(name, meaning string) metric.Float64Gauge {
		made, err := meter.Float64Gauge(name, metric.WithUnit("s"), metric.WithDescription(meaning))
		failed = errors.Join(failed, err)
		return made
	}
	m.overdue = gauge("holdfast.retention.overdue",
		"How long ago the time of the oldest job was over that this worker last deleted or blanked; 0 if it found none.")
	m.behind = gauge("holdfast.retention.behind",
		"How long ago this worker last had looked at every job that is old enough; 0 while another worker deletes.")
	var err error
	m.batchSize, err = meter.Int64Histogram("holdfast.batch.size", metric.WithUnit("{item}"),
		metric.WithDescription("How many jobs, leases or reports a batch had."), metric.WithExplicitBucketBoundaries(batchSizes...))
	if err := errors.Join(failed, err); err != nil {
		return nil, err
	}
	m.types.Store(&map[string]*typeLabels{})
	m.startAtZero()
	return m, nil
}

func (m *Metrics) startAtZero() {
	ctx := context.Background()
	for _, o := range operations {
		m.databaseErrors.Add(ctx, 0, o.add...)
	}
	for _, loss := range []Loss{LossUnproven, LossAtSettle} {
		m.leaseLosses.Add(ctx, 0, loss.add...)
	}
	for _, cause := range reapCauses {
		m.reaped.Add(ctx, 0, cause.add...)
	}
	for _, one := range disposals {
		m.disposed.Add(ctx, 0, one.add...)
	}
	for _, one := range operatedLabels {
		m.operated.Add(ctx, 0, one.add...)
	}
	m.overdue.Record(ctx, 0)
	m.behind.Record(ctx, 0)
	for _, result := range []TickResult{TickFired, TickSkipped, TickMissed, TickFailed} {
		m.ticks.Add(ctx, 0, result.add...)
	}
	m.events.Add(ctx, 0)
	m.cutOff.Add(ctx, 0)
	m.callbacks.Add(ctx, 0, callbackMade.add...)
	m.callbacks.Add(ctx, 0, callbackFailed.add...)
	m.callbacks.Add(ctx, 0, callbackGivenUp.add...)
	for _, result := range workflowResults {
		m.workflows.Add(ctx, 0, result.add...)
	}
	for _, hint := range hintLabels {
		m.hintsSent.Add(ctx, 0, hint.add...)
		m.hintsHeard.Add(ctx, 0, hint.add...)
	}
}

// ObserveLeases reads the number of leases whenever metrics are collected. Call
// it once.
func (m *Metrics) ObserveLeases(held func() int) error {
	_, err := m.meter.Int64ObservableGauge("holdfast.leases.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases this worker holds: of jobs that run, and of those that wait for a slot or to be settled."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(held()))
			return nil
		}))
	return err
}

// ObserveStreams reads the number of clients that follow events whenever metrics are
// collected. Call it once.
func (m *Metrics) ObserveStreams(open func() int) error {
	_, err := m.meter.Int64ObservableGauge("holdfast.events.streams", metric.WithUnit("{stream}"),
		metric.WithDescription("Clients that this orchestrator sends events to."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(open()))
			return nil
		}))
	return err
}

// CutOff counts a stream of events that was ended because its client accepted nothing for too
// long, or because the events could not be read.
func (m *Metrics) CutOff(ctx context.Context) { m.cutOff.Add(ctx, 1) }

// Declare makes the types labels of their own.
func (m *Metrics) Declare(specs []job.TypeSpec) {
	m.declaring.Lock()
	defer m.declaring.Unlock()
	known := *m.types.Load()
	grown := maps.Clone(known)
	for _, spec := range specs {
		if grown[spec.Type] == nil {
			grown[spec.Type] = newTypeLabels(spec.Type)
		}
	}
	if len(grown) > len(known) {
		m.types.Store(&grown)
	}
}

// TypeLabel returns the job type if some plugin, of this process or another, has
// declared it, and the one name for all other types if not. It does not ask the
// database, so it may not know a type that was declared a moment ago.
func (m *Metrics) TypeLabel(jobType string) string { return m.labels(jobType).name }

func (m *Metrics) labels(jobType string) *typeLabels {
	if labels := (*m.types.Load())[jobType]; labels != nil {
		return labels
	}
	return m.other
}

// Claimed measures how late the jobs were claimed.
func (m *Metrics) Claimed(jobs []job.Claimed) {
	for i := range jobs {
		latency := jobs[i].ClaimedAt.Sub(jobs[i].RunAt)
		labels := m.labels(jobs[i].Type)
		m.claimLatency.Record(context.Background(), latency.Seconds(), labels.all.record...)
		labels.latencies.waits[job.LatencyBucket(latency)].Add(1)
	}
}

// Admitted measures how long the jobs were parked.
func (m *Metrics) Admitted(jobs []job.Admitted) {
	for i := range jobs {
		m.admissionWait.Record(context.Background(), jobs[i].Waited.Seconds(), m.labels(jobs[i].Type).all.record...)
	}
}

// Ran measures a handler that is done, whatever becomes of its outcome.
func (m *Metrics) Ran(jobType string, outcome job.OutcomeKind, took time.Duration) {
	labels := m.labels(jobType)
	m.attemptDuration.Record(context.Background(), took.Seconds(), labels.outcomes[outcome].record...)
	labels.latencies.runs[job.LatencyBucket(took)].Add(1)
}

// Settled counts attempts whose end is in the ledger.
func (m *Metrics) Settled(jobType string, outcome job.OutcomeKind, attempts int) {
	m.attempts.Add(context.Background(), int64(attempts), m.labels(jobType).outcomes[outcome].add...)
}

// Batch measures one try, whether the database answered it or not.
func (m *Metrics) Batch(o Operation, size int, began time.Time, err error) {
	m.batchDuration.Record(context.Background(), time.Since(began).Seconds(), o.record...)
	if err == nil {
		m.batchSize.Record(context.Background(), int64(size), o.record...)
	}
	m.Failed(o, err)
}

// Failed counts an error that another try may cure, and no other.
func (m *Metrics) Failed(o Operation, err error) {
	if errors.Is(err, job.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		m.databaseErrors.Add(context.Background(), 1, o.add...)
	}
}

// LeaseLost counts a lost lease.
func (m *Metrics) LeaseLost(how Loss) { m.leaseLosses.Add(context.Background(), 1, how.add...) }

// Reaped counts a job that was taken over because of WorkerGone or LeaseExpired.
func (m *Metrics) Reaped(cause string) {
	m.reaped.Add(context.Background(), 1, reapCauses[cause].add...)
}

// Expired counts a job that was canceled because it had not started by its time.
func (m *Metrics) Expired(jobType string) {
	m.expired.Add(context.Background(), 1, m.labels(jobType).all.add...)
}

// Ticks counts ticks of schedules.
func (m *Metrics) Ticks(result TickResult, n int64) {
	if n > 0 {
		m.ticks.Add(context.Background(), n, result.add...)
	}
}

// TickLag measures how late the job of a tick was made.
func (m *Metrics) TickLag(lag time.Duration) { m.tickLag.Record(context.Background(), lag.Seconds()) }

// FollowedUp counts what a round of the follower has made.
func (m *Metrics) FollowedUp(done job.Following) {
	ctx := context.Background()
	m.callbacks.Add(ctx, int64(done.Delivered.Jobs), callbackMade.add...)
	m.callbacks.Add(ctx, int64(done.Delivered.Failed), callbackFailed.add...)
	m.callbacks.Add(ctx, int64(done.Delivered.GivenUp), callbackGivenUp.add...)
	m.events.Add(ctx, int64(done.Recorded))
}

// WorkflowFinished counts a workflow that has finished, by its last state.
func (m *Metrics) WorkflowFinished(state job.WorkflowState) {
	m.workflows.Add(context.Background(), 1, workflowResults[state].add...)
}

// HintSent counts a hint, or the error with which it could not be sent.
func (m *Metrics) HintSent(hint job.Hint, err error) {
	if err == nil {
		m.hintsSent.Add(context.Background(), 1, hintLabels[hint].add...)
	}
	m.Failed(OpHint, err)
}

// HintHeard counts a hint from any process.
func (m *Metrics) HintHeard(hint job.Hint) {
	m.hintsHeard.Add(context.Background(), 1, hintLabels[hint].add...)
}

// Disposed counts jobs that were Deleted, Blanked or Erased, by the state in which they were.
func (m *Metrics) Disposed(action string, jobs map[job.State]int64) {
	for state, n := range jobs {
		m.disposed.Add(context.Background(), n, disposals[disposal{action, state}].add...)
	}
}

// Operated counts jobs that an operation found, which are OperationDone or OperationSkipped.
func (m *Metrics) Operated(action job.Action, result string, jobs int64) {
	if jobs > 0 {
		m.operated.Add(context.Background(), jobs, operatedLabels[operated{action, result}].add...)
	}
}

// Swept measures how far the deleter is: how late it found the oldest job, and how long ago
// it had last looked at all.
func (m *Metrics) Swept(overdue, behind time.Duration) {
	m.overdue.Record(context.Background(), overdue.Seconds())
	m.behind.Record(context.Background(), behind.Seconds())
}
