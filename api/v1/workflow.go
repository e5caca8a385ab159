package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// WorkflowSubmission is the body of POST /workflows. The server reads it with the package
// submission, which has the same limits.
type WorkflowSubmission struct {
	Name           *string       `json:"name,omitempty" nullable:"true" minLength:"1" maxLength:"200" example:"nightly import" doc:"For people. It need not be unique."`
	IdempotencyKey *string       `json:"idempotencyKey,omitempty" nullable:"true" minLength:"1" maxLength:"255" doc:"Names this request. If you send it again, the answer names the workflow that the first one made. Same as the Idempotency-Key header."`
	Tenant         *string       `json:"tenant,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"The tenant that owns the workflow and its jobs. The default is \"default\"."`
	Jobs           []WorkflowJob `json:"jobs" nullable:"false" minItems:"1" maxItems:"10000" doc:"The jobs, in any order. All of them are stored, or none."`
	OnComplete     *Submission   `json:"onComplete,omitempty" doc:"A job that runs when all jobs have succeeded or were canceled or skipped. A dead job holds it back."`
}

// WorkflowJob is a job of a workflow that is submitted. It has no idempotency key and no
// tenant of its own, and cannot be unique.
type WorkflowJob struct {
	Submission

	Name    *string      `json:"name,omitempty" nullable:"true" minLength:"1" maxLength:"200" example:"load" doc:"By what other jobs of the workflow name it. Unique within the workflow."`
	After   []string     `json:"after,omitempty" nullable:"true" maxItems:"10000" doc:"The names of the jobs that must have succeeded before this one starts. A workflow can have 100,000 of them."`
	OnDeath *job.OnDeath `json:"onDeath,omitempty" nullable:"true" enum:"wait,skip,cancel" doc:"What happens if one of the jobs before it is dead. wait, the default: it waits until that one was requeued and has succeeded. skip: it is canceled, and the jobs after it go on. cancel: it is canceled, and so are the jobs after it, unless they skip."`
}

// WorkflowAccepted is the answer to the submission of a workflow. It is the same whether the
// submission made the workflow or found it by its idempotency key.
type WorkflowAccepted struct {
	WorkflowID job.ID           `json:"workflowId" format:"uuid"`
	CreatedAt  time.Time        `json:"createdAt"`
	Jobs       []WorkflowMember `json:"jobs" nullable:"false" doc:"In the order you sent them."`
	OnComplete *job.ID          `json:"onComplete,omitempty" format:"uuid" doc:"The job that runs when all others have ended."`
}

// WorkflowMember is one of the jobs that a submission made.
type WorkflowMember struct {
	JobID job.ID `json:"jobId" format:"uuid"`
	Name  string `json:"name,omitempty"`
}

// Workflow is a workflow without its jobs.
type Workflow struct {
	WorkflowID   job.ID            `json:"workflowId" format:"uuid"`
	Name         string            `json:"name,omitempty"`
	Tenant       string            `json:"tenant"`
	State        job.WorkflowState `json:"state" enum:"running,held,stuck,canceling,succeeded,canceled" doc:"stuck: a job is dead, and the workflow waits for its requeue. canceling: somebody has canceled it, and some jobs have not ended yet. canceled: it has ended, and a job did not succeed."`
	Jobs         int               `json:"jobs" doc:"How many jobs it has, without onComplete."`
	Remaining    int               `json:"remaining" doc:"How many of them have not ended. A dead job has not ended."`
	Unsuccessful int               `json:"unsuccessful" doc:"How many have ended without success, onComplete included."`
	CreatedAt    time.Time         `json:"createdAt"`
	CanceledAt   *time.Time        `json:"canceledAt,omitempty" doc:"When somebody canceled it."`
	FinishedAt   *time.Time        `json:"finishedAt,omitempty" doc:"When the last of its jobs had ended."`
}

// WorkflowOf is what clients see of a workflow.
func WorkflowOf(w job.Workflow) Workflow {
	return Workflow{
		WorkflowID: w.ID, Name: w.Name, Tenant: w.Tenant, State: w.State(), Jobs: w.Jobs, Remaining: w.Remaining,
		Unsuccessful: w.Unsuccessful, CreatedAt: w.CreatedAt.UTC(), CanceledAt: utc(w.CanceledAt), FinishedAt: utc(w.FinishedAt),
	}
}

// WorkflowList is a page of workflows.
type WorkflowList struct {
	Workflows    []Workflow `json:"workflows" nullable:"false" doc:"Newest first. With a filter by state, a page can be short, or empty, while more pages follow."`
	NextCursor   string     `json:"nextCursor,omitempty" doc:"Where the next page begins. Absent on the last page."`
	SearchedBack *time.Time `json:"searchedBack,omitempty" doc:"The page ends early, because it has looked at 10,000 workflows. It has all that match and were created since then."`
}

// WorkflowCount is how many workflows there are.
type WorkflowCount struct {
	Count int  `json:"count" doc:"Exact up to 10,000."`
	More  bool `json:"more" doc:"Whether there are more, or may be: only the newest 10,000 are looked at. Those that have not finished count alone if you ask for nothing else."`
}

// WorkflowDetail is a workflow with its jobs.
type WorkflowDetail struct {
	Workflow

	Steps []WorkflowStep `json:"steps" nullable:"false" doc:"Its jobs, in the order of the submission. onComplete comes last."`
}

// WorkflowStep is a job of a workflow.
type WorkflowStep struct {
	JobID      job.ID      `json:"jobId" format:"uuid"`
	Name       string      `json:"name,omitempty"`
	JobType    string      `json:"jobType" doc:"Empty if the job was deleted."`
	Status     job.Status  `json:"status" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED"`
	State      job.State   `json:"state" enum:"created,queued,running,retry,succeeded,dead,canceled" doc:"The exact state behind the status."`
	After      []string    `json:"after" nullable:"false" doc:"The names of the jobs before it."`
	Missing    int         `json:"missing" doc:"How many of the jobs before it have not ended. For onComplete, 1 while others have not."`
	OnDeath    job.OnDeath `json:"onDeath" enum:"wait,skip,cancel" doc:"What happens if one of the jobs before it is dead."`
	OnComplete bool        `json:"onComplete,omitempty" doc:"Whether it runs when all others have ended."`
	Skipped    bool        `json:"skipped,omitempty" doc:"Whether it was canceled because one before it died, and the jobs after it go on."`
	Reason     string      `json:"reason,omitempty" doc:"Why it was canceled, if it had not started."`
}

// WorkflowDetailOf is what clients see of a workflow and its jobs.
func WorkflowDetailOf(w job.WorkflowDetail) WorkflowDetail {
	shown := WorkflowDetail{Workflow: WorkflowOf(w.Workflow), Steps: make([]WorkflowStep, len(w.Steps))}
	names := make(map[job.ID]string, len(w.Steps))
	for _, step := range w.Steps {
		names[step.JobID] = step.Name
	}
	for i, step := range w.Steps {
		after := make([]string, len(step.After))
		for k, id := range step.After {
			after[k] = names[id]
		}
		shown.Steps[i] = WorkflowStep{
			JobID: step.JobID, Name: step.Name, JobType: step.Type, Status: step.State.Status(), State: step.State, After: after,
			Missing: step.Missing, OnDeath: step.OnDeath, OnComplete: step.OnComplete, Skipped: step.Skipped, Reason: step.Reason,
		}
	}
	return shown
}
