package describe

import (
	"encoding/json"
	"net/http"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	oneJob  = `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}`
	another = `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 2}}`
)

// clientOperations describe what clients do, and what is done with dead letters, by their ids.
var clientOperations = map[string]operation{
	"submit-job": {
		chapter: "Jobs", summary: "Submit a job", counted: true,
		description: "Records the job and answers; a handler executes it later. With an idempotency key you can repeat the request: the answer names the same job.",
		requests: []request{
			{name: "at-once", summary: "Run it at once", media: mediaJSON, body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 5}}`},
			{
				name: "later", summary: "Run it in an hour, before others", media: mediaJSON,
				body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 5}, "delay": "1h", "priority": 10}`,
			},
			{
				name: "with-everything", summary: "Set every member", media: mediaJSON,
				body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 5}, "idempotencyKey": "order-4711", "runAt": "2030-01-31T12:00:00Z",
"priority": 0, "maxAttempts": 4, "timeout": "30s", "tenant": "default", "tags": ["nightly"], "hold": false,
"concurrencyKey": "customer:42", "concurrencyLimit": 1, "onConflict": "queue", "fairnessKey": "eu", "expiresAt": "2030-01-31T18:00:00Z",
"uniqueFor": "1h", "uniqueBy": ["/sleepSeconds"], "callbackUrl": "https://example.com/hook"}`,
			},
		},
		answers: []answer{{status: http.StatusAccepted, media: mediaJSON, body: sampleAccepted}},
		rejections: map[int]rejection{
			http.StatusUnprocessableEntity: {
				why: "A value in the body cannot be accepted: the job type is unknown, the payload does not match its schema, or the key was used for another job",
				example: v1.Invalid(tooLong,
					v1.Mistake{Location: "#/priority", Message: "must be a whole number from -32767 to 32767"}),
			},
		},
	},
	"submit-jobs": {
		chapter: "Jobs", summary: "Submit many jobs", counted: true,
		description: "Send an array, or one job a line; the answer has the same format. An atomic batch is stored whole or not at all. " +
			"With atomic=false each job is accepted or refused on its own. Lines are then answered while more arrive, so a stream can be endless.",
		requests: []request{
			{name: "array", summary: "An array", media: mediaJSON, isArray: true, body: "[" + oneJob + ", " + another + "]"},
			{name: "lines", summary: "One a line", media: mediaLines, body: oneJob + "\n" + another + "\n"},
		},
		answers: []answer{
			{status: http.StatusAccepted, media: mediaJSON, body: v1.BatchAccepted{Accepted: 1, Jobs: []v1.Accepted{sampleAccepted}}},
			{
				status: http.StatusAccepted, media: mediaLines, says: "All of the jobs are durably recorded.",
				body: lines{v1.BatchResult{Index: 0, Job: &sampleAccepted}},
			},
			{status: http.StatusOK, media: mediaJSON, body: v1.BatchResults{Accepted: 1, Refused: 1, Results: sampleResults}},
			{
				status: http.StatusOK, media: mediaLines, says: "With atomic=false: the result of each job.",
				body: lines{sampleResults[0], sampleResults[1], v1.BatchEnd{Done: true, Accepted: 1, Refused: 1}},
			},
		},
		rejections: map[int]rejection{
			http.StatusBadRequest: {
				why:     "The body is not JSON in UTF-8, is empty, or is nested too deep; or one key was sent for all of the jobs",
				example: v1.NewProblem(http.StatusBadRequest, "the body is not JSON: unexpected end of JSON input: line 2, column 14"),
			},
			http.StatusUnprocessableEntity: {
				why:     "A value of a job cannot be accepted, and nothing was stored",
				example: v1.Invalid(v1.Mistake{Location: "#/1/payload/sleepSeconds", Message: tooLong.Message}),
			},
		},
	},
	"list-jobs": {
		chapter: "Jobs", summary: "List jobs", description: "Newest first. Filters combine: a job must match all of them.",
		answers: with(v1.JobList{Jobs: []v1.Job{sampleDone}, NextCursor: sampleCursor}), rejections: notYours(),
	},
	"get-job": {
		chapter: "Jobs", summary: "See what became of a job",
		description: "With wait, the answer comes as soon as the job has ended, or with its current state when the time is over.",
		answers:     with(sampleDone),
	},
	"get-job-tree": {
		chapter: "Jobs", summary: "See a job with those that it has submitted",
		description: "And with those that these have submitted, and so on: at most 1,000 jobs, the nearest ones.",
		answers:     with(sampleTree),
	},
	"cancel-job": {
		chapter: "Jobs", summary: "Cancel a job",
		description: "A waiting job is canceled at once. A running job is asked to stop, and is RUNNING until it has. Answers 409 for a job that has succeeded or failed.",
		answers:     with(jobThatIs(job.StatusCanceled)), rejections: wrongState("The job has succeeded or failed"),
	},
	"hold-job": {
		chapter: "Jobs", summary: "Hold a scheduled job until it is released",
		description: "Answers 409 for a job that is not scheduled.",
		answers:     with(jobThatIs(job.StatusPending)), rejections: wrongState("The job is not scheduled"),
	},
	"release-job": {
		chapter: "Jobs", summary: "Make a held or scheduled job eligible now",
		description: "Answers 409 for a job that is neither held nor scheduled.",
		answers:     with(jobThatIs(job.StatusPending)), rejections: wrongState("The job is neither held nor scheduled"),
	},
	"edit-job": {
		chapter: "Jobs", summary: "Change a job that waits",
		description: "Changes the priority, the due time or the tags; members that you leave out stay as they are. " +
			"A job that is queued and gets a due time in the future is scheduled again, and a held job that gets one is no longer held. " +
			"Answers 409 for a job that runs or has ended.",
		takes: v1.Edit{}, requests: []request{
			{name: "urgent", summary: "Run it before others", media: mediaPatch, body: `{"priority": 10}`},
			{name: "later", summary: "Postpone it, with other tags", media: mediaPatch, body: `{"delay": "1h", "tags": ["nightly"]}`},
			{name: "json", summary: "Run it before others", media: mediaJSON, body: `{"priority": 10}`},
		},
		answers: with(jobThatIs(job.StatusPending)), rejections: badEdit(map[int]rejection{http.StatusConflict: {
			why: "The job runs or has ended", example: v1.NewProblem(http.StatusConflict, "the job is RUNNING; only a job that waits can be changed"),
		}}),
	},
	"edit-jobs": {
		chapter: "Jobs", summary: "Change many jobs that wait",
		description: "Changes the jobs that match all filters, newest first, up to the limit. At least one filter is needed. " +
			"Repeat the request with nextCursor until there is none. Jobs that run or end meanwhile are left alone.",
		takes: v1.Edit{}, requests: []request{
			{name: "urgent", summary: "Run them before others", media: mediaPatch, body: `{"priority": 10}`},
			{name: "json", summary: "Run them before others", media: mediaJSON, body: `{"priority": 10}`},
		},
		answers: with(v1.Edited{Count: 12, NextCursor: sampleCursor}), rejections: badEdit(notYours()),
	},

	"follow-events": {
		chapter: "Jobs", summary: "Follow the ends of jobs",
		description: "A stream of server-sent events, one for each end: job.succeeded, job.dead or job.canceled. " +
			"Come back with the Last-Event-ID to miss none. If some were deleted meanwhile, a message \"gap\" comes first, " +
			"with the members after (the last event that you have seen) and next. Answers 409 if no events are recorded, and 503 if too many clients follow.",
		answers: []answer{{status: http.StatusOK, media: "text/event-stream", body: sampleEvents}}, rejections: withNotYours(map[int]rejection{
			http.StatusConflict: {
				why:     "No events are recorded",
				example: v1.NewProblem(http.StatusConflict, "this orchestrator records no events: set events.keep in its configuration, such as 1h"),
			},
		}),
	},

	"list-job-types": {
		chapter: "Job types", summary: "List the job types",
		description: "Every type that a handler has ever declared, with the configuration applied.",
		answers:     with(v1.JobTypeList{JobTypes: []v1.JobType{sampleType}}),
	},
	"get-job-type": {
		chapter: "Job types", summary: "See a job type",
		description: "As a handler last declared it, with the configuration applied.",
		answers:     with(sampleType), rejections: noSuchType("No handler has declared this job type", "no such job type"),
	},
	"get-job-type-schema": {
		chapter: "Job types", summary: "See the JSON Schema of a job type's payload",
		description: "Exactly as the handler declared it. Answers 404 for a type that takes any payload.",
		answers: []answer{{status: http.StatusOK, media: mediaSchema, says: "The schema.", body: json.RawMessage(
			`{"type": "object", "properties": {"sleepSeconds": {"type": "integer", "minimum": 1, "maximum": 300}}, "required": ["sleepSeconds"]}`,
		)}},
		rejections: noSuchType("No handler has declared this job type, or it takes any payload", "the job type declares no schema"),
	},

	"requeue-job": {
		chapter: "Dead letters", summary: "Requeue a dead-lettered job, with all its attempts", counted: true,
		description: "Answers 400 for a job that is not dead-lettered, and 409 for one whose workflow is held or was canceled.",
		answers:     with(jobThatIs(job.StatusPending)),
		rejections: map[int]rejection{
			http.StatusBadRequest: {
				why: "The job is not dead-lettered", example: v1.NewProblem(http.StatusBadRequest, "the job is not dead-lettered"),
			},
			http.StatusConflict: {
				why:     "The workflow of the job is held, or was canceled",
				example: v1.NewProblem(http.StatusConflict, "the workflow of the job is held: release the workflow first"),
			},
		},
	},
	"list-dead-letters": {
		chapter: "Dead letters", summary: "Inspect dead-lettered jobs",
		description: "Newest first. A dead-lettered job has failed for good, or has used up its attempts.",
		answers:     with(v1.DeadLetterList{DeadLetters: []v1.DeadLetter{sampleDeadLetter}, NextCursor: sampleCursor}), rejections: notYours(),
	},
	"group-dead-letters": {
		chapter: "Dead letters", summary: "See what dead-lettered jobs have in common",
		description: "Groups them by job type and by the fingerprint of their last error, which leaves out numbers, ids, quoted text and the like. The group with the latest death comes first.",
		answers:     with(sampleGroups), rejections: notYours(),
	},
	"retry-dead-letters": {
		chapter: "Dead letters", summary: "Requeue dead-lettered jobs", counted: true,
		description: "Each gets all its attempts again. Those that have been dead for longest come first.",
		answers:     with(v1.Requeued{Count: 12}), rejections: notYours(),
	},
}

// aboutOperation describes the operation with the id, whichever file has it.
func aboutOperation(id string) operation {
	for _, file := range []map[string]operation{clientOperations, operatorOperations, scheduleOperations, workflowOperations, allPluginOperations} {
		if about, found := file[id]; found {
			return about
		}
	}
	return operation{}
}
