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

// operations describe the operations, by their ids.
var operations = map[string]operation{
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
"uniqueFor": "1h", "uniqueBy": ["/sleepSeconds"]}`,
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
		description: "Answers 400 for a job that is not dead-lettered.",
		answers:     with(jobThatIs(job.StatusPending)),
		rejections: map[int]rejection{http.StatusBadRequest: {
			why: "The job is not dead-lettered", example: v1.NewProblem(http.StatusBadRequest, "the job is not dead-lettered"),
		}},
	},
	"list-dead-letters": {
		chapter: "Dead letters", summary: "Inspect dead-lettered jobs",
		description: "Newest first. A dead-lettered job has failed for good, or has used up its attempts.",
		answers:     with(v1.DeadLetterList{DeadLetters: []v1.DeadLetter{sampleDeadLetter}, NextCursor: sampleCursor}), rejections: notYours(),
	},
	"retry-dead-letters": {
		chapter: "Dead letters", summary: "Requeue dead-lettered jobs", counted: true,
		description: "Each gets all its attempts again. Those that have been dead for longest come first.",
		answers:     with(v1.Requeued{Count: 12}), rejections: notYours(),
	},

	"inspect-job": {
		chapter: "Operation", summary: "See everything about a job",
		description: "Including its payload, attempts, errors, worker, lease and trace, which clients cannot see.",
		answers:     with(sampleDetail),
	},
	"get-job-logs": {
		chapter: "Operation", summary: "See what a job's handler has logged",
		description: "Attempt by attempt. The lines of a running attempt appear within a second or two.",
		answers:     with(sampleLogs),
	},
	"list-workers": {
		chapter: "Operation", summary: "See the workers and what they did",
		description: "Every known orchestrator, alive or not.",
		answers:     with(v1.WorkerList{Workers: []v1.Worker{sampleWorker}}),
	},
	"summarize-workers": {
		chapter: "Operation", summary: "See what all workers did together",
		description: "Without sinceMinutes, the totals cover all time.",
		answers:     with(v1.WorkerSummary{SinceMinutes: 15, Totals: sampleCounts}),
	},
	"list-queues": {
		chapter: "Operation", summary: "See what waits and runs, by job type",
		description: "Lists the job types with a job that waits, runs or is dead-lettered, and those that a live worker has a handler for.",
		answers:     with(v1.QueueList{Queues: []v1.Queue{sampleQueue}, Unserved: []string{}}),
	},
	"diagnose": {
		chapter: "Operation", summary: "Look for problems",
		description: "Reads the whole ledger, which may take up to two minutes. Answers 200 whatever it finds, and 503 during another diagnosis.",
		answers:     with(sampleDiagnosis),
		rejections: map[int]rejection{http.StatusServiceUnavailable: {
			why:     "Another diagnosis is in progress, this one took too long, or the database is not available",
			example: v1.NewProblem(http.StatusServiceUnavailable, "another diagnosis is in progress"),
			headers: rejections[http.StatusServiceUnavailable].headers,
		}},
	},
	"get-metrics": {
		chapter: "Operation", summary: "See the state of the whole system",
		description: "Answers in JSON, or in Prometheus' format if the Accept header prefers text/plain or application/openmetrics-text. sinceMinutes applies only to JSON.",
		answers: []answer{
			{status: http.StatusOK, media: mediaJSON, body: sampleMetrics, varies: true},
			{status: http.StatusOK, media: mediaText, body: samplePrometheus},
		},
		rejections: map[int]rejection{http.StatusNotAcceptable: {
			why: "This server has no metrics for Prometheus", example: v1.NewProblem(http.StatusNotAcceptable, "only JSON is offered here"),
		}},
	},
	"list-limits": {
		chapter: "Operation", summary: "See the limits",
		description: "Of job types, tenants, classes of concurrency keys, and fairness keys, whoever has set them. They hold across all orchestrators.",
		answers:     with(v1.LimitList{Limits: []v1.Limit{sampleLimit}}),
	},
	"get-limit": {
		chapter: "Operation", summary: "See a limit", description: "As it was set: not the limit for every name that has none of its own.",
		answers: with(sampleLimit), rejections: noSuchLimit(),
	},
	"set-limit": {
		chapter: "Operation", summary: "Set a limit",
		description: "Replaces the limit of that name as a whole. It is in force on every orchestrator within a second, also for jobs that wait already. Answers 409 for a limit that a configuration sets.",
		takes:       v1.LimitSpec{}, requests: []request{
			{name: "rate", summary: "At most 10 at once, and 100 a minute", media: mediaJSON, body: `{"concurrency": 10, "rate": "100/1m", "burst": 10}`},
		},
		answers: with(sampleLimit), rejections: isConfigured(nothingNamed()),
	},
	"delete-limit": {
		chapter: "Operation", summary: "Delete a limit",
		description: "Jobs that wait for it go on, unless something else limits them. Answers with the limit as it was, and 409 for a limit that a configuration sets.",
		answers:     with(sampleLimit), rejections: isConfigured(noSuchLimit()),
	},
	"list-pauses": {
		chapter: "Operation", summary: "See what is paused", description: "And who has paused it, why, and until when.",
		answers: with(v1.PauseList{Pauses: []v1.Pause{samplePause}}),
	},
	"set-pause": {
		chapter: "Operation", summary: "Pause a job type, a plugin or a tenant",
		description: "No further job of it starts, on any orchestrator, within a second. Submission goes on. Running jobs finish, unless drain is set. A pause of the same is replaced.",
		takes:       v1.PauseSpec{}, requests: pauseRequests, answers: with(samplePause), rejections: nothingNamed(),
	},
	"pause-all": {
		chapter: "Operation", summary: "Pause everything",
		description: "No further job starts, on any orchestrator, within a second. Submission goes on. Running jobs finish, unless drain is set.",
		takes:       v1.PauseSpec{}, requests: pauseRequests, answers: with(sampleHalt),
	},
	"end-pause": {
		chapter: "Operation", summary: "End the pause of a job type, a plugin or a tenant", description: "Answers with the pause as it was.",
		answers: with(samplePause), rejections: noSuchPause(),
	},
	"resume-all": {
		chapter: "Operation", summary: "End the pause of everything", description: "What is paused by itself stays so. Answers with the pause as it was.",
		answers: with(sampleHalt), rejections: noSuchPause(),
	},
	"drain-worker": {
		chapter: "Operation", summary: "Let a worker take no more jobs",
		description: "Its running jobs get worker.drain_timeout to finish; the rest is given back, without charging the attempt. The worker is draining, then drained. It does not exit, and can be resumed.",
		answers:     with(drainedWorker()), rejections: noSuchWorker(),
	},
	"resume-worker": {
		chapter: "Operation", summary: "Let a drained worker take jobs again", description: "It is no error if the worker was not drained.",
		answers: with(sampleWorker), rejections: noSuchWorker(),
	},
	"list-plugins": {
		chapter: "Operation", summary: "See the plugins of this orchestrator",
		description: "Each with its version, its processes, and its latest replacement. Other orchestrators have their own.",
		answers:     with(v1.PluginList{Plugins: []v1.Plugin{samplePlugin}}),
	},
	"swap-plugin": {
		chapter: "Operation", summary: "Replace a plugin with what its file is now",
		description: "Works as if the file had changed: the new version starts beside the old one, runs as a canary, and is promoted or rolled back. " +
			"Answers 200 when that is decided, and 202 if it takes longer than a request may. Answers 503, and does nothing, if an earlier swap takes that long.",
		answers: sampleSwaps, rejections: noSuchPlugin(),
	},
	"restart-plugin": {
		chapter: "Operation", summary: "Replace a plugin's processes with new ones of the same version",
		description: "The new ones start before the old ones finish their attempts. Answers 200 when they serve or have failed to start, " +
			"and 202 if it takes longer than a request may. Answers 503, and does nothing, if an earlier swap takes that long.",
		answers: sampleSwaps, rejections: noSuchPlugin(),
	},
	"disable-plugin": {
		chapter: "Operation", summary: "Stop a plugin",
		description: "It finishes its attempts and starts no more; its jobs stay queued. It stays disabled until you enable it or this orchestrator restarts.",
		answers:     with(samplePlugin), rejections: noSuchPlugin(),
	},
	"enable-plugin": {
		chapter: "Operation", summary: "Start a plugin that was disabled",
		description: "It serves what its file is now. If that was rolled back or refused, the previous version serves, and skipReason says why. " +
			"If that version no longer exists, the answer is 409. A plugin that is not disabled stays as it is.",
		answers: with(samplePlugin),
		rejections: map[int]rejection{
			http.StatusNotFound: noSuchPlugin()[http.StatusNotFound],
			http.StatusConflict: {
				why:     "Its file cannot be read",
				example: v1.NewProblem(http.StatusConflict, "plugin builtin: open /opt/holdfast/handlers: permission denied"),
			},
		},
	},
}
