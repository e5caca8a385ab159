package meter

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// answerWithin is how long the database may take to answer.
	answerWithin = 2 * time.Second
	// keepFor is how long its answer is used again, or the lack of one.
	keepFor = time.Second
	// ledgerWindow is for recent counts, which are not shown here: a query to Prometheus
	// chooses its own window.
	ledgerWindow = time.Minute
)

// ledger is the last answer of the database, as far as it got in its time. It is asked
// once at a time, however many scrapes there are.
type ledger struct {
	ask func(ctx context.Context, window time.Duration) (v1.Metrics, error)

	mu      sync.Mutex
	askedAt time.Time
	last    v1.Metrics
	up      bool
}

// read returns the state of the system as far as the database has given it, and false when
// it has not answered at all. The loops log why not.
func (l *ledger) read() (v1.Metrics, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.askedAt) < keepFor {
		return l.last, l.up
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	answer, err := l.ask(ctx, ledgerWindow)
	// Slow is not down: a backlog is counted the slower the longer it is.
	slow := errors.Is(err, context.DeadlineExceeded) && !answer.At.IsZero()
	l.last, l.up, l.askedAt = answer, err == nil || slow, time.Now()
	return l.last, l.up
}

func watchLedger(meter metric.Meter, l *ledger, typeLabel func(string) string) error {
	o := observables{meter: meter}
	up := o.gauge("holdfast.database.up", "",
		"Whether the database has answered within 2 s: 1, or 0. At 0, the metrics that it gives are absent.")
	jobs := o.gauge("holdfast.jobs", "{job}", "Jobs in the ledger, by state.")
	queue := o.gauge("holdfast.queue.jobs", "{job}",
		"Jobs that wait, run or are dead, by type: queued are claimable now, scheduled and retrying are due later, held have no time.")
	oldest := o.gauge("holdfast.queue.oldest.age", "s",
		"How long the first of the queued jobs has been claimable; 0 when none is.")
	served := o.gauge("holdfast.queue.served", "", "Whether a live worker has a handler for the type: 1, or 0.")
	paused := o.gauge("holdfast.queue.paused", "", "Whether the type, its plugin or everything is paused: 1, or 0.")
	waiting := o.gauge("holdfast.queue.waiting", "{job}", "Queued jobs by what they wait for.")
	used := o.gauge("holdfast.limit.used", "{slot}", "Used slots of a type or a tenant that has a limit of its own: jobs that run, or are about to.")
	slots := o.gauge("holdfast.limit.slots", "{slot}", "Slots of the same: how many jobs may run.")
	inbox := o.gauge("holdfast.admission.inbox", "{event}",
		"Freed slots and parked jobs that no orchestrator has looked at yet, in groups, counted up to 10000.")
	snapshot := o.gauge("holdfast.snapshot.age", "s",
		"How long the oldest snapshot has kept vacuum from removing dead rows.")
	transactions := o.gauge("holdfast.snapshot.age.transactions", "{transaction}",
		"How many transactions ago the oldest snapshot was taken.")
	return o.observe(func(to metric.Observer) {
		now, answered := l.read()
		to.ObserveFloat64(up, oneIf(answered))
		if !answered {
			return
		}
		if now.StatusCounts != nil {
			for _, state := range job.States() {
				to.ObserveFloat64(jobs, float64(now.StatusCounts[state]), label("state", string(state)))
			}
		}
		for _, q := range byLabel(now.Queues, typeLabel) {
			jobType := attribute.String("job_type", q.JobType)
			for state, n := range map[string]int64{
				"queued": q.Queued, "scheduled": q.Scheduled, "held": q.Held,
				"retrying": q.Retrying, "running": q.Running, "dead": q.Dead,
			} {
				to.ObserveFloat64(queue, float64(n), metric.WithAttributes(jobType, attribute.String("state", state)))
			}
			to.ObserveFloat64(oldest, q.OldestQueuedSeconds, metric.WithAttributes(jobType))
			to.ObserveFloat64(served, oneIf(q.Served), metric.WithAttributes(jobType))
			to.ObserveFloat64(paused, oneIf(q.Paused), metric.WithAttributes(jobType))
			for _, reason := range job.QueuedReasons() {
				to.ObserveFloat64(waiting, float64(q.Waiting[reason]),
					metric.WithAttributes(jobType, attribute.String("reason", string(reason))))
			}
		}
		for _, limit := range now.Limits {
			of := metric.WithAttributes(attribute.String("scope", string(limit.Scope)), attribute.String("name", limit.Name))
			to.ObserveFloat64(used, float64(limit.Used), of)
			to.ObserveFloat64(slots, float64(limit.Slots), of)
		}
		if now.Limits != nil {
			to.ObserveFloat64(inbox, float64(now.AdmissionInbox))
		}
		to.ObserveFloat64(snapshot, now.OldestSnapshotSeconds)
		to.ObserveFloat64(transactions, float64(now.SnapshotAgeTransactions))
	})
}

// byLabel joins the queues of types that share a label: the sum of their jobs,
// the age of the oldest, and served or paused only if each is.
func byLabel(queues []v1.Queue, typeLabel func(string) string) map[string]v1.Queue {
	joined := make(map[string]v1.Queue, len(queues))
	for _, q := range queues {
		q.JobType = typeLabel(q.JobType)
		if other, shared := joined[q.JobType]; shared {
			q.Queued += other.Queued
			q.Scheduled += other.Scheduled
			q.Held += other.Held
			q.Retrying += other.Retrying
			q.Running += other.Running
			q.Dead += other.Dead
			q.OldestQueuedSeconds = max(q.OldestQueuedSeconds, other.OldestQueuedSeconds)
			q.Served = q.Served && other.Served
			q.Paused = q.Paused && other.Paused
			q.Waiting = maps.Clone(q.Waiting)
			for reason, jobs := range other.Waiting {
				q.Waiting[reason] += jobs
			}
		}
		joined[q.JobType] = q
	}
	return joined
}
