package metrics

import (
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

// Operation is what a loop asks of the database.
type Operation struct {
	labels
	name string
}

// String is the operation's name in metrics and logs.
func (o Operation) String() string { return o.name }

func newOperation(name string) Operation {
	return Operation{labels: labelled(attribute.String("operation", name)), name: name}
}

// The operations.
var (
	OpAdmit     = newOperation("admit")
	OpClaim     = newOperation("claim")
	OpExpire    = newOperation("expire")
	OpHeartbeat = newOperation("heartbeat")
	OpHint      = newOperation("hint")
	OpReport    = newOperation("note")
	OpPromote   = newOperation("promote")
	OpReap      = newOperation("reap")
	OpRules     = newOperation("rules")
	OpSettle    = newOperation("settle")
	OpSubmit    = newOperation("submit")
	OpTypes     = newOperation("types")

	operations = []Operation{OpAdmit, OpClaim, OpExpire, OpHeartbeat, OpHint, OpReport, OpPromote, OpReap, OpRules, OpSettle, OpSubmit, OpTypes}
)

// Loss is how a lease turned out to be lost.
type Loss struct{ labels }

// The ways in which a lease turns out to be lost.
var (
	// LossUnproven: the handler was stopped, because the lease was not proven in
	// time or the heartbeat found it taken over.
	LossUnproven = Loss{labelled(attribute.String("reason", "unproven"))}
	// LossAtSettle: the settlement was refused.
	LossAtSettle = Loss{labelled(attribute.String("reason", "settle"))}
)

// The reasons for which a reaper finds a lease expired. They are also the codes
// of the attempts that it settles.
const (
	WorkerGone   = "worker_gone"
	LeaseExpired = "lease_expired"
)

var reapCauses = map[string]labels{
	WorkerGone:   labelled(attribute.String("reason", WorkerGone)),
	LeaseExpired: labelled(attribute.String("reason", LeaseExpired)),
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

// otherType stands for every type that no plugin has declared. Types are usually
// in upper case, so it cannot be mistaken for one.
var otherType = newTypeLabels("other")

func newTypeLabels(jobType string) *typeLabels {
	name := attribute.String("job_type", jobType)
	t := &typeLabels{name: jobType, all: labelled(name), outcomes: make(map[job.OutcomeKind]labels)}
	for _, kind := range job.OutcomeKinds() {
		t.outcomes[kind] = labelled(name, attribute.String("outcome", string(kind)))
	}
	return t
}
