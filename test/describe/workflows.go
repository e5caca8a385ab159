package describe

import (
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const aWorkflow = `{"name": "nightly import", "jobs": [
{"name": "extract", "jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}},
{"name": "orders", "jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}, "after": ["extract"]},
{"name": "customers", "jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}, "after": ["extract"], "onDeath": "skip"}],
"onComplete": {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}}`

var (
	sampleWorkflow = v1.Workflow{
		WorkflowID: sampleID, Name: "nightly import", Tenant: "default", State: job.WorkflowRunning, Jobs: 3, Remaining: 2, CreatedAt: sampleSince,
	}
	sampleWorkflowAccepted = v1.WorkflowAccepted{
		WorkflowID: sampleID, CreatedAt: sampleSince,
		Jobs: []v1.WorkflowMember{{JobID: sampleID, Name: "extract"}}, OnComplete: &sampleID,
	}
	sampleWorkflowDetail = v1.WorkflowDetail{
		Workflow: sampleWorkflow,
		Steps: []v1.WorkflowStep{
			{JobID: sampleID, Name: "extract", JobType: "SLEEP_JOB", Status: job.StatusCompleted, State: job.Succeeded, After: []string{}, OnDeath: job.OnDeathWait},
			{JobID: sampleID, Name: "orders", JobType: "SLEEP_JOB", Status: job.StatusPending, State: job.Created, After: []string{"extract"}, Missing: 1, OnDeath: job.OnDeathWait},
		},
	}
)

func workflowThatIs(state job.WorkflowState) v1.Workflow {
	w := sampleWorkflow
	w.State = state
	if state == job.WorkflowCanceled {
		w.Remaining, w.Unsuccessful, w.CanceledAt, w.FinishedAt = 0, 3, new(sampleSince.Add(time.Minute)), new(sampleSince.Add(time.Minute))
	}
	return w
}

// workflowOperations describe the operations on workflows, by their ids.
var workflowOperations = map[string]operation{
	"submit-workflow": {
		chapter: "Workflows", summary: "Submit jobs that come after one another", counted: true,
		description: "A job starts when those that it names in after have succeeded. All of the jobs are stored, or none. With an idempotency key you can repeat the request: the answer names the same workflow.",
		takes:       v1.WorkflowSubmission{},
		requests:    []request{{name: "import", summary: "Two jobs after one, and one after all", media: mediaJSON, body: aWorkflow}},
		answers:     []answer{{status: http.StatusAccepted, media: mediaJSON, body: sampleWorkflowAccepted}},
		rejections: map[int]rejection{
			http.StatusUnprocessableEntity: {
				why:     "A value cannot be accepted: a job that could not be submitted alone, a name that no job has, a cycle, or a key that was used for another workflow",
				example: v1.Invalid(v1.Mistake{Location: "#/jobs/0/after/0", Message: "makes a cycle: extract → load → extract"}),
			},
		},
	},
	"list-workflows": {
		chapter: "Workflows", summary: "List workflows", description: "Newest first, without their jobs. With a filter by state, a page looks at 10,000 workflows at most, and says how far back it has looked.",
		answers: with(v1.WorkflowList{Workflows: []v1.Workflow{sampleWorkflow}, NextCursor: sampleCursor}), rejections: notYours(),
	},
	"count-workflows": {
		chapter: "Workflows", summary: "Count workflows", description: "Exactly up to 10,000, by the same filters as for listing them.",
		answers: with(v1.WorkflowCount{Count: 12}), rejections: notYours(),
	},
	"get-workflow": {
		chapter: "Workflows", summary: "See a workflow and its jobs", description: "What each job is doing, and what it comes after.",
		answers: with(sampleWorkflowDetail), rejections: noSuchWorkflow(),
	},
	"cancel-workflow": {
		chapter: "Workflows", summary: "Cancel a workflow",
		description: "Its jobs that wait are canceled, and those that run are asked to stop. A dead job stays dead, and holds the workflow back no more. Answers 409 for a workflow that has ended.",
		answers:     with(workflowThatIs(job.WorkflowCanceling)), rejections: ended(),
	},
	"hold-workflow": {
		chapter: "Workflows", summary: "Hold a workflow until it is released",
		description: "No further job of it starts. Jobs that run, or wait for their next attempt, go on. Answers 409 for a workflow that has ended or is being canceled.",
		answers:     with(workflowThatIs(job.WorkflowHeld)), rejections: ended(),
	},
	"release-workflow": {
		chapter: "Workflows", summary: "Release a held workflow",
		description: "Its jobs start as they would have, at their times. Answers 409 for a workflow that has ended or is being canceled.",
		answers:     with(workflowThatIs(job.WorkflowRunning)), rejections: ended(),
	},
	"requeue-workflow": {
		chapter: "Workflows", summary: "Requeue all dead jobs of a workflow", counted: true,
		description: "Each gets all its attempts again. Jobs that were skipped or canceled because of them stay so. Answers 409 for a workflow that is held, has ended or is being canceled.",
		answers:     with(v1.Requeued{Count: 2}), rejections: ended(),
	},
}

func noSuchWorkflow() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "There is no such workflow, or it is another tenant's", example: v1.NewProblem(http.StatusNotFound, job.ErrNoWorkflow.Error()),
	}}
}

func ended() map[int]rejection {
	rejections := noSuchWorkflow()
	rejections[http.StatusConflict] = rejection{
		why:     "The workflow has ended, or is being canceled",
		example: v1.NewProblem(http.StatusConflict, "the workflow has ended or is being canceled: it is succeeded"),
	}
	return rejections
}
