package describe

import (
	"net/http"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// operatorOperations describe what operators do, by their ids.
var operatorOperations = map[string]operation{
	"inspect-job": {
		chapter: "Operation", summary: "See everything about a job",
		description: "Including its payload, attempts, errors, worker, lease and trace, which clients cannot see.",
		answers:     with(sampleDetail),
	},
	"find-jobs": {
		chapter: "Operation", summary: "Find jobs",
		description: "Newest first, by exact state, worker, error code and more. Filters combine: a job must match all of them. Jobs that wait or run are found at once among any number of others; to find others, a page looks at 10,000 jobs at most, and says how far back it has looked.",
		answers:     with(v1.FoundJobs{Jobs: []v1.FoundJob{sampleFound}, NextCursor: sampleCursor, PageCursor: sampleCursor, SearchedBack: &sampleTime}), rejections: notYours(),
	},
	"count-jobs": {
		chapter: "Operation", summary: "Count jobs",
		description: "Exactly up to 10,000, by the same filters as for finding them.",
		answers:     with(v1.JobCount{Count: 10_000, More: true}), rejections: notYours(),
	},
	"look-up-jobs": {
		chapter: "Operation", summary: "Look up jobs by an id or a key",
		description: "Finds the job or the workflow with this id, and the jobs with this idempotency key: keys are unique within a tenant, so there can be one for each.",
		answers:     with(v1.Lookup{Jobs: []v1.FoundJob{sampleFound}}), rejections: notYours(),
	},
	"resubmit-job": {
		chapter: "Operation", summary: "Submit a job anew, perhaps changed", counted: true,
		description: "Makes a new job like this one, in whatever state this one is, and leaves it as it is. Payload, priority, attempts, timeout, tags, keys " +
			"and callback URL are those of the job, unless you give others. The new job is due at once unless you say otherwise, and has no idempotency key and is " +
			"not unique unless you ask for it. It is checked like any submission. Without a body nothing is changed. Answers 409 for an erased job.",
		takes: v1.Resubmission{}, requests: []request{
			{name: "corrected", summary: "With another payload", media: mediaJSON, body: `{"payload": {"sleepSeconds": 1}, "delay": "1h"}`},
			{name: "patch", summary: "With other tags", media: mediaPatch, body: `{"tags": ["again"], "delay": "1h"}`},
		},
		answers: []answer{{status: http.StatusAccepted, media: mediaJSON, body: sampleAccepted}},
		rejections: map[int]rejection{
			http.StatusConflict: {why: "The job was erased", example: v1.NewProblem(http.StatusConflict, "the job was erased, so it cannot run again: submit a new one")},
			http.StatusUnsupportedMediaType: {
				why: "The Content-Type is not one that the operation takes",
				example: v1.NewProblem(http.StatusUnsupportedMediaType,
					"send JSON, with the header Content-Type: application/merge-patch+json or application/json, and no Content-Encoding"),
			},
			http.StatusUnprocessableEntity: {why: "A value in the request cannot be accepted", example: v1.Invalid(tooLong)},
		},
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
	"get-series": {
		chapter: "Operation", summary: "See what happened over time",
		description: "Slot by slot: how many jobs were submitted and ended, how many were open, and how long they waited and ran. Counts are exact. A kill of an orchestrator loses the waits and runs of its last 10 seconds.",
		answers:     with(sampleSeries), rejections: noSuchType("No handler has declared the job type, and no job has had it", job.ErrNoType.Error()),
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
	"get-replica": {
		chapter: "Operation", summary: "See how the replica of the database is used",
		description: "By the orchestrator that you ask: whether lists and figures come from the replica, and how far it is behind.",
		answers: with(v1.Replica{Configured: true, Used: true, LagSeconds: new(0.7), MaxLagSeconds: 10, Reads: map[string]int64{
			"replica": 5120, "down": 3, "behind": 0, "foreign": 0, "conflict": 1, "failed": 0, "fresh": 2,
		}}),
	},
	"get-config": {
		chapter: "Operation", summary: "See the settings of this orchestrator",
		description: "Shows what the orchestrator that you ask runs with. Secrets, and whatever may contain one, are withheld.",
		answers: with(v1.Configuration{Settings: []v1.Setting{
			{Key: "server.address", Value: "127.0.0.1:8080"}, {Key: "worker.lease", Value: "30s"}, {Key: "security.password", Value: "xxxxx"},
		}}),
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
	"list-acts": {
		chapter: "Operation", summary: "See what people did",
		description: "Newest first: acts of operators by API, command line and UI, those that failed, and those that were refused because of a missing scope. A caller for one tenant sees those that concern it.",
		answers:     with(v1.ActList{Acts: []v1.Act{sampleAct}}),
	},
	"make-login-link": {
		chapter: "Operation", summary: "Make a link that logs a browser in",
		description: "Send a browser to the path within a minute. It is logged in as you, once, for the pages of the UI and nothing else.",
		answers:     with(v1.LoginLink{Path: "/ui/link?code=2J3ZPkIykQ9mTqEgwvzFwpoJDrXQW1bYxPZ9NvGwVvU", ExpiresInSeconds: 60}),
	},
	"plan-retention": {
		chapter: "Operation", summary: "See what retention does now",
		description: "What this orchestrator deletes by its configuration, and what it keeps and why. Changes nothing. A large ledger is sampled: then the numbers are estimates.",
		answers:     with(samplePlan),
	},
	"erase-job": {
		chapter: "Operation", summary: "Erase what an ended job contains",
		description: "Blanks its payload, result, progress, tags, errors, stacks and logs. The record stays: its states, times, outcomes and key. A dead job cannot be requeued afterwards. The audit log says who did it and why. Without a body, there is no reason. Answers 409 for a job that has not ended.",
		takes:       v1.EraseSpec{}, requests: []request{{name: "why", summary: "With a reason", media: mediaJSON, body: `{"reason": "ticket 4711"}`}},
		answers: with(sampleErased),
		rejections: map[int]rejection{http.StatusConflict: {
			why: "The job has not ended", example: v1.NewProblem(http.StatusConflict, "the job has not ended: cancel it first"),
		}},
	},
	"erase-tenant": {
		chapter: "Operation", summary: "Erase what the ended jobs of a tenant contain",
		description: "Blanks all jobs of the tenant that have ended, in the background: see the erasure for how far that is. Jobs that have not ended are counted and left.",
		takes:       v1.ErasureSpec{}, requests: []request{{name: "tenant", summary: "All ended jobs of acme", media: mediaJSON, body: `{"tenant": "acme", "reason": "contract ended"}`}},
		answers: []answer{{status: http.StatusAccepted, media: mediaJSON, body: v1.ErasureOf(sampleErasure)}},
	},
	"list-erasures": {
		chapter: "Operation", summary: "See the erasures of tenants", description: "The newest first.",
		answers: with(v1.ErasureList{Erasures: []v1.Erasure{finishedErasure()}}),
	},
	"get-erasure": {
		chapter: "Operation", summary: "See how far the erasure of a tenant is", description: "It is finished when finishedAt is there.",
		answers: with(finishedErasure()), rejections: map[int]rejection{http.StatusNotFound: {
			why: "There is no such erasure, or it is another tenant's", example: v1.NewProblem(http.StatusNotFound, job.ErrNoErasure.Error()),
		}},
	},
	"start-operation": {
		chapter: "Operation", summary: "Act on all jobs that match a filter",
		description: "Requeues, cancels, holds or releases them, or edits their priority. Answers 202, and the orchestrators do it in the background, a portion at a time: see the operation for how far that is. A dry run answers 200 and starts nothing. Both count the jobs, up to two seconds. Jobs that are created or die after frozenAt are left. An operation to requeue counts against the rate limit of requeues, once.",
		takes:       v1.OperationSpec{}, requests: []request{
			{name: "dry run", summary: "How many jobs are there?", media: mediaJSON, body: `{"action": "requeue", "filter": {"jobType": "SEND_EMAIL", "errorCode": "timeout"}, "dryRun": true}`},
			{name: "requeue", summary: "Requeue what timed out, 200 a second", media: mediaJSON, body: `{"action": "requeue", "filter": {"jobType": "SEND_EMAIL", "errorCode": "timeout"}, "rate": 200, "reason": "mail is back"}`},
			{name: "edit", summary: "Let the jobs of a tenant go first", media: mediaJSON, body: `{"action": "edit", "filter": {"tenant": "acme"}, "priority": 10}`},
		},
		answers: []answer{
			{status: http.StatusOK, media: mediaJSON, body: samplePreview()},
			{status: http.StatusAccepted, media: mediaJSON, body: sampleStarted(), says: "The operation was started."},
		},
		counted: true,
	},
	"list-operations": {
		chapter: "Operation", summary: "See the operations on many jobs", description: "The newest first. They are kept for 90 days after their end.",
		answers: with(v1.OperationList{Operations: []v1.Operation{sampleOperation()}}),
	},
	"get-operation": {
		chapter: "Operation", summary: "See how far an operation is", description: "It has ended when finishedAt is there.",
		answers: with(sampleOperation()), rejections: noSuchOperation(),
	},
	"stop-operation": {
		chapter: "Operation", summary: "Stop an operation",
		description: "When the answer arrives, it acts on no more jobs. What it has done stays done. An operation that has ended stays as it is.",
		answers:     with(stoppedOperation()), rejections: noSuchOperation(),
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
