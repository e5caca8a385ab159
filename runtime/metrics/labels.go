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
	OpErase     = newOperation("erase")
	OpExpire    = newOperation("expire")
	OpFollow    = newOperation("follow")
	OpHeartbeat = newOperation("heartbeat")
	OpHint      = newOperation("hint")
	OpLook      = newOperation("look")
	OpOperate   = newOperation("operate")
	OpReport    = newOperation("note")
	OpPromote   = newOperation("promote")
	OpReap      = newOperation("reap")
	OpRules     = newOperation("rules")
	OpSettle    = newOperation("settle")
	OpSubmit    = newOperation("submit")
	OpSweep     = newOperation("sweep")
	OpTick      = newOperation("tick")
	OpTypes     = newOperation("types")

	operations = []Operation{OpAdmit, OpClaim, OpErase, OpExpire, OpFollow, OpHeartbeat, OpHint, OpLook, OpOperate, OpReport, OpPromote, OpReap, OpRules, OpSettle, OpSubmit, OpSweep, OpTick, OpTypes}
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

// TickResult is what became of a tick of a schedule.
type TickResult struct{ labels }

// The results of ticks; see job.ScheduleCounts.
var (
	TickFired   = TickResult{labelled(attribute.String("result", "fired"))}
	TickSkipped = TickResult{labelled(attribute.String("result", "skipped"))}
	TickMissed  = TickResult{labelled(attribute.String("result", "missed"))}
	TickFailed  = TickResult{labelled(attribute.String("result", "failed"))}
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

// What becomes of a callback.
var (
	callbackMade    = labelled(attribute.String("result", "made"))
	callbackFailed  = labelled(attribute.String("result", "failed"))
	callbackGivenUp = labelled(attribute.String("result", "given_up"))
)

var workflowResults = map[job.WorkflowState]labels{
	job.WorkflowSucceeded: labelled(attribute.String("result", string(job.WorkflowSucceeded))),
	job.WorkflowCanceled:  labelled(attribute.String("result", string(job.WorkflowCanceled))),
}

var hintLabels = func() map[job.Hint]labels {
	all := make(map[job.Hint]labels)
	for _, hint := range job.Hints() {
		all[hint] = labelled(attribute.String("hint", string(hint)))
	}
	return all
}()

// disposal is what retention or an erasure does to a job in a final state.
type disposal struct {
	action string
	state  job.State
}

// The ways in which data is disposed of.
const (
	Deleted = "deleted"
	Blanked = "blanked"
	Erased  = "erased"
)

var disposals = func() map[disposal]labels {
	all := make(map[disposal]labels)
	for _, action := range []string{Deleted, Blanked, Erased} {
		for _, state := range job.States() {
			if state.Final() {
				all[disposal{action, state}] = labelled(attribute.String("action", action), attribute.String("state", string(state)))
			}
		}
	}
	return all
}()

// operated is what an operation did to a job.
type operated struct {
	action job.Action
	result string
}

// What an operation does with the jobs that it finds.
const (
	OperationDone    = "done"
	OperationSkipped = "skipped"
)

var operatedLabels = func() map[operated]labels {
	all := make(map[operated]labels)
	for _, action := range job.Actions() {
		for _, result := range []string{OperationDone, OperationSkipped} {
			all[operated{action, result}] = labelled(attribute.String("action", string(action)), attribute.String("result", result))
		}
	}
	return all
}()

// typeLabels are the labels of one job type: by itself, and with each outcome.
type typeLabels struct {
	name      string
	all       labels
	outcomes  map[job.OutcomeKind]labels
	latencies latencies
}

// otherType stands for every type that no plugin has declared. Types are usually
// in upper case, so it cannot be mistaken for one.
const otherType = "other"

func newTypeLabels(jobType string) *typeLabels {
	name := attribute.String("job_type", jobType)
	t := &typeLabels{name: jobType, all: labelled(name), outcomes: make(map[job.OutcomeKind]labels)}
	for _, kind := range job.OutcomeKinds() {
		t.outcomes[kind] = labelled(name, attribute.String("outcome", string(kind)))
	}
	return t
}
