package runtime

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// labels are attributes, made once, in the form that each kind of instrument
// takes them.
type labels struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func labelled(attributes ...attribute.KeyValue) labels {
	set := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return labels{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}

// operation is what a loop asks of the database.
type operation struct {
	labels
	name string
}

func newOperation(name string) operation {
	return operation{labels: labelled(attribute.String("operation", name)), name: name}
}

var (
	opClaim     = newOperation("claim")
	opHeartbeat = newOperation("heartbeat")
	opHint      = newOperation("hint")
	opNote      = newOperation("note")
	opPromote   = newOperation("promote")
	opReap      = newOperation("reap")
	opSettle    = newOperation("settle")
	opSubmit    = newOperation("submit")
	opTypes     = newOperation("types")

	operations = []operation{opClaim, opHeartbeat, opHint, opNote, opPromote, opReap, opSettle, opSubmit, opTypes}
)

// The ways in which a lease turns out to be lost.
var (
	// lossUnproven: the handler was stopped, because the lease was not proven
	// in time or the heartbeat found it to be somebody else's.
	lossUnproven = labelled(attribute.String("reason", "unproven"))
	// lossAtSettle: the attempt's end was refused.
	lossAtSettle = labelled(attribute.String("reason", "settle"))
)

// The reasons for which a reaper finds a lease expired.
const (
	workerGone   = "worker_gone"
	leaseExpired = "lease_expired"
)

var reapCauses = map[string]labels{
	workerGone:   labelled(attribute.String("reason", workerGone)),
	leaseExpired: labelled(attribute.String("reason", leaseExpired)),
}

var hintLabels = func() map[job.Hint]labels {
	all := make(map[job.Hint]labels)
	for _, hint := range job.Hints() {
		all[hint] = labelled(attribute.String("hint", string(hint)))
	}
	return all
}()

// typeLabels are the labels of one job type: by itself, and with each outcome.
type typeLabels struct {
	name     string
	all      labels
	outcomes map[job.OutcomeKind]labels
}

// otherType stands for every type that no plugin has declared. Upper case is
// usual for types, so that it is not mistaken for one.
var otherType = newTypeLabels("other")

func newTypeLabels(jobType string) *typeLabels {
	name := attribute.String("job_type", jobType)
	t := &typeLabels{name: jobType, all: labelled(name), outcomes: make(map[job.OutcomeKind]labels)}
	for _, kind := range job.OutcomeKinds() {
		t.outcomes[kind] = labelled(name, attribute.String("outcome", string(kind)))
	}
	return t
}

// instruments declares instruments on a meter and gathers what goes wrong.
type instruments struct {
	meter metric.Meter
	err   error
}

func (i *instruments) counter(name, unit, meaning string) metric.Int64Counter {
	made, err := i.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	i.err = errors.Join(i.err, err)
	return made
}

// histogram is one of seconds.
func (i *instruments) histogram(name string, bounds []float64, meaning string) metric.Float64Histogram {
	made, err := i.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(meaning),
		metric.WithExplicitBucketBoundaries(bounds...))
	i.err = errors.Join(i.err, err)
	return made
}

func (i *instruments) sizes(name string, bounds []float64, meaning string) metric.Int64Histogram {
	made, err := i.meter.Int64Histogram(name, metric.WithUnit("{item}"), metric.WithDescription(meaning),
		metric.WithExplicitBucketBoundaries(bounds...))
	i.err = errors.Join(i.err, err)
	return made
}

// gauge is read whenever the metrics are collected.
func (i *instruments) gauge(name, unit, meaning string, read func() int64) {
	_, err := i.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(meaning),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read())
			return nil
		}))
	i.err = errors.Join(i.err, err)
}
