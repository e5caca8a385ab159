package job

import (
	"errors"
	"slices"
	"time"
)

// ErrNoOperation says that there is no operation of that id.
var ErrNoOperation = errors.New("no such operation")

// Action is what an operation does to each of its jobs.
type Action string

// The actions: each is what an operator can do to one job.
const (
	ActionRequeue Action = "requeue"
	ActionCancel  Action = "cancel"
	ActionHold    Action = "hold"
	ActionRelease Action = "release"
	ActionEdit    Action = "edit" // of the priority
)

// Actions returns all of them.
func Actions() []Action {
	return []Action{ActionRequeue, ActionCancel, ActionHold, ActionRelease, ActionEdit}
}

// States are those of the jobs that the action applies to.
func (a Action) States() []State {
	switch a {
	case ActionRequeue:
		return []State{Dead}
	case ActionCancel:
		return []State{Created, Queued, Running, Retry}
	case ActionHold, ActionRelease:
		return []State{Created}
	case ActionEdit:
		return []State{Created, Queued, Retry}
	}
	return nil
}

// OperationState is how far an operation is.
type OperationState string

// Operations end as finished, stopped by somebody, or failed.
const (
	OperationRunning  OperationState = "running"
	OperationStopped  OperationState = "stopped"
	OperationFinished OperationState = "finished"
	OperationFailed   OperationState = "failed"
)

const (
	// DefaultRate and MaxRate are how many jobs a second an operation acts on.
	DefaultRate = 1000
	MaxRate     = 10_000
	// OperationsKept is how long operations are kept that have ended.
	OperationsKept = 90 * 24 * time.Hour
	// maxPortion bounds the jobs of a portion, which are locked until it is written.
	maxPortion = 200
	// portionsPerSecond is how often an operation acts, if its rate allows.
	portionsPerSecond = 10
)

// Operation is one action on all jobs that match a filter at one moment.
type Operation struct {
	ID     ID
	Action Action
	// Filter has FrozenAt set: jobs that were created or died later are not touched.
	Filter Filter
	// Priority is the new one; nil unless the action is ActionEdit.
	Priority *int16
	// Rate is how many jobs a second it acts on at most.
	Rate   int
	Reason string
	// By is who started it, and StoppedBy who stopped it: the user who logged in, or a token by
	// its name.
	By, StoppedBy string
	State         OperationState
	// Expected is how many jobs matched when it started.
	Expected Count
	// Found are the jobs that matched when it came to them: those that it has Done, and those
	// that it has skipped, by the reason.
	Found, Done int64
	Skipped     map[string]int64
	// Failures count the portions that have failed since one succeeded.
	Failures  int
	LastError string
	StartedAt time.Time
	UpdatedAt time.Time
	// FinishedAt is when it finished, was stopped, or failed; nil before that.
	FinishedAt *time.Time
}

// Portion is how many jobs the next portion may act on.
func (o Operation) Portion() int {
	return min(max(o.Rate/portionsPerSecond, 1), maxPortion)
}

// Skip says why an operation has left a job as it is.
func (o Operation) Skip(v View) string {
	switch {
	case o.Action == ActionRequeue && v.State == Dead && v.ErasedAt != nil:
		return "erased"
	case o.Action == ActionRequeue && v.State == Dead:
		return "its workflow is held or canceled"
	case o.Action == ActionRelease && v.State == Created:
		return "its workflow is held, or it waits for others of it"
	case v.State == "":
		return "deleted meanwhile"
	case slices.Contains(o.Action.States(), v.State):
		return "moved meanwhile"
	}
	return SkippedChanged
}

// SkippedChanged is why a job was left that matched no more when its turn came.
const SkippedChanged = "changed meanwhile"

// OperationFilter chooses operations. Zero fields are no restriction.
type OperationFilter struct {
	ID ID
	// Tenant is that of the operations' filters.
	Tenant string
	// Limit bounds how many are returned; at least 1.
	Limit int
}

// OperationStart is a request for an operation.
type OperationStart struct {
	Operation
	// Key names the request among those of the caller, and Hash says what it was; nil for none.
	Key  *string
	Hash []byte
	// Shown is the filter as the audit log has it, for everybody who may read that: names and
	// values.
	Shown map[string]string
}

// Preview is what an operation would act on.
type Preview struct {
	Count Count
	// Next is the After with which the count goes on; zero if it has seen all jobs.
	Next ID
	// Samples are the newest of the jobs.
	Samples []Found
	// At is the moment of the filter, by the clock of the database.
	At time.Time
	// Died are the versions of plugins under which the newest of the jobs died.
	Died []DiedOn
}

// DiedOn is a version of a plugin under which jobs of a type died.
type DiedOn struct {
	Type    string
	Version string
	Jobs    int
}

// PortionDone is what a portion of an operation has done. All of it is committed.
type PortionDone struct {
	// Operation is as it is afterwards. It may have ended.
	Operation Operation
	// Acted counts the jobs that the portion acted on, and Examined those that it found.
	Acted, Found int
	Requeued     []Requeued
	Canceled     []Cancellation
	Edited       []Edited
	Released     int
}

// OperationError is an error that only the operation has: others go on.
type OperationError struct {
	ID  ID
	Err error
}

func (e *OperationError) Error() string { return "operation " + e.ID.String() + ": " + e.Err.Error() }

func (e *OperationError) Unwrap() error { return e.Err }
