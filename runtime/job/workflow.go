package job

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNoWorkflow says that there is no such workflow.
var ErrNoWorkflow = errors.New("no such workflow")

// The bounds of workflows.
const (
	// MaxWorkflowJobs bounds the jobs of a workflow, without the one for onComplete.
	MaxWorkflowJobs = 10_000
	// MaxWorkflowEdges bounds all `after` of a workflow together.
	MaxWorkflowEdges = 100_000
	// MaxPredecessorBytes bounds the results of predecessors that a handler gets. Those
	// beyond it are left out, in the order of `after`.
	MaxPredecessorBytes = 2 << 20
)

// OnDeath says what becomes of a job when one that it comes after is dead.
type OnDeath string

const (
	// OnDeathWait: it waits until the dead job was requeued and has succeeded.
	OnDeathWait OnDeath = "wait"
	// OnDeathSkip: it is canceled, and the jobs after it go on as if it had succeeded.
	OnDeathSkip OnDeath = "skip"
	// OnDeathCancel: it is canceled, and so are the jobs after it unless they skip.
	OnDeathCancel OnDeath = "cancel"
)

// OnDeaths returns all of them.
func OnDeaths() []OnDeath { return []OnDeath{OnDeathWait, OnDeathSkip, OnDeathCancel} }

// WorkflowSubmission is a client's request for a workflow, with every default resolved.
// Nothing in it has cycles.
type WorkflowSubmission struct {
	// ID is the new workflow's. The same id sent twice makes one workflow.
	ID     ID
	Tenant string
	// Name is for people; empty for none.
	Name string
	// IdempotencyKey is unique among the workflows of the tenant; empty for none.
	IdempotencyKey string
	// Jobs are all of its tenant, without idempotency keys, and not unique.
	Jobs []WorkflowStep
	// OnComplete runs when all jobs have ended; nil for none.
	OnComplete *Submission
}

// WorkflowStep is a job of a workflow that is submitted.
type WorkflowStep struct {
	Submission

	Name string
	// After are the indexes of the jobs before it, each once.
	After   []int
	OnDeath OnDeath
}

// WorkflowReceipt is the answer to the submission of a workflow.
type WorkflowReceipt struct {
	ID        ID
	CreatedAt time.Time
	// Jobs are the receipts of the jobs, in the order of the submission, and at the end
	// that of OnComplete. It is nil for a replay.
	Jobs []Receipt
	// Replayed says that an earlier submission with the same key made the workflow.
	Replayed bool
}

// WorkflowState is what a workflow is doing.
type WorkflowState string

const (
	// WorkflowRunning: its jobs run, or wait to.
	WorkflowRunning WorkflowState = "running"
	// WorkflowHeld: no more of its jobs become due until somebody releases it.
	WorkflowHeld WorkflowState = "held"
	// WorkflowStuck: a job is dead. It waits for its requeue, or for the cancel of the whole.
	WorkflowStuck WorkflowState = "stuck"
	// WorkflowCanceling: somebody has canceled it, and some jobs have not ended yet.
	WorkflowCanceling WorkflowState = "canceling"
	// WorkflowSucceeded: all jobs have succeeded.
	WorkflowSucceeded WorkflowState = "succeeded"
	// WorkflowCanceled: all jobs have ended, and some did not succeed.
	WorkflowCanceled WorkflowState = "canceled"
)

// WorkflowStates returns all states.
func WorkflowStates() []WorkflowState {
	return []WorkflowState{WorkflowRunning, WorkflowHeld, WorkflowStuck, WorkflowCanceling, WorkflowSucceeded, WorkflowCanceled}
}

// Workflow is a workflow as people see it in a list.
type Workflow struct {
	ID     ID
	Tenant string
	Name   string
	// Jobs is how many jobs it has, without OnComplete, Remaining how many of them have not
	// ended, and Unsuccessful how many were canceled or skipped, OnComplete included.
	Jobs, Remaining, Unsuccessful int
	// Dead says that a job of it is dead.
	Dead       bool
	Held       bool
	CreatedAt  time.Time
	CanceledAt *time.Time
	FinishedAt *time.Time
}

// State derives the state of the whole.
func (w Workflow) State() WorkflowState {
	switch {
	case w.FinishedAt != nil && w.Unsuccessful == 0:
		return WorkflowSucceeded
	case w.FinishedAt != nil:
		return WorkflowCanceled
	case w.CanceledAt != nil:
		return WorkflowCanceling
	case w.Held:
		return WorkflowHeld
	case w.Dead:
		return WorkflowStuck
	}
	return WorkflowRunning
}

// WorkflowFilter chooses workflows, newest first.
type WorkflowFilter struct {
	// Tenant is the only one whose workflows are listed; empty for all.
	Tenant string
	// Unfinished leaves out those that have finished.
	Unfinished bool
	// Before is where the page begins: with the first workflow older than this one; nil for
	// the newest.
	Before *ID
	Limit  int
}

// WorkflowDetail is a workflow with its jobs, at one moment.
type WorkflowDetail struct {
	Workflow

	// Steps are in the order of the submission. OnComplete is the last one.
	Steps []WorkflowStepView
}

// WorkflowStepView is a job of a workflow as people see it.
type WorkflowStepView struct {
	JobID   ID
	Type    string
	Name    string
	State   State
	OnDeath OnDeath
	// OnComplete says that it runs when all others have ended.
	OnComplete bool
	// Skipped says that it was canceled because one before it died, and that those after it
	// go on.
	Skipped bool
	// After are the jobs before it.
	After []ID
	// Missing is how many of those before it have not ended.
	Missing int
	// Reason is why it was canceled before it had started; empty if it was not.
	Reason string
}

// Predecessor is a job that had to end before another one could start.
type Predecessor struct {
	Name string
	ID   ID
	// Succeeded is false if it was skipped or canceled.
	Succeeded bool
	// Result is JSON; nil for none.
	Result []byte
	// Omitted says that it has a result, which is left out because all of them together
	// have more than MaxPredecessorBytes.
	Omitted bool
}

// WorkflowCount is a workflow that has finished.
type WorkflowCount struct {
	ID ID
	// State is WorkflowSucceeded or WorkflowCanceled.
	State WorkflowState
}

// MaxWaitNames is how many of the jobs that another one waits for are named.
const MaxWaitNames = 5

// WorkflowWait is what a job of a workflow waits for.
type WorkflowWait struct {
	// Missing is how many of those before it have not ended. For OnComplete, it is 1 while
	// others have not.
	Missing int
	// Held says that the workflow is, Canceled that somebody canceled it.
	Held, Canceled bool
	// Last says that the job is OnComplete, and Remaining how many others have not ended.
	Last      bool
	Remaining int
	// Names are of some of the jobs before it; an id where there is no name.
	Names []string
}

func (w WorkflowWait) waits() (waits []Wait) {
	if w.Missing > 0 {
		waits = append(waits, Wait{Reason: WaitPredecessors, Message: w.message()})
	}
	if w.Held {
		waits = append(waits, Wait{Reason: WaitHeld, Message: "held until its workflow is released"})
	}
	if len(waits) == 0 {
		waits = append(waits, Wait{Reason: WaitHeld, Message: "held until it is released"})
	}
	return waits
}

func (w WorkflowWait) message() string {
	if w.Last {
		return fmt.Sprintf("waits for all jobs of its workflow (%d have not ended)", w.Remaining)
	}
	names := strings.Join(w.Names, ", ")
	if more := w.Missing - len(w.Names); more > 0 {
		names += fmt.Sprintf(" and %d others", more)
	}
	return "waits for " + names + " of its workflow"
}

// WaitsError refuses to start a job that waits for others of its workflow, or whose workflow
// is held or canceled.
type WaitsError struct{ Wait WorkflowWait }

func (e *WaitsError) Error() string {
	switch {
	case e.Wait.Canceled:
		return "the workflow of the job was canceled: submit the job anew"
	case e.Wait.Missing > 0:
		return "the job " + e.Wait.message()
	}
	return "the workflow of the job is held: release the workflow first"
}

// Unwrap returns ErrWrongState.
func (e *WaitsError) Unwrap() error { return ErrWrongState }
