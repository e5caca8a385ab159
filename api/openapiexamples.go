package api

import (
	"encoding/json"
	"net/http"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// samples are the examples of every operation, by its id.
var samples = map[string]sample{
	"submit-job": {
		requests: []sampleRequest{
			{name: "at-once", summary: "Run it at once", media: mediaJSON, body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 5}}`},
			{
				name: "later", summary: "Run it in an hour, before others", media: mediaJSON,
				body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 5}, "delay": "1h", "priority": 10}`,
			},
			{
				name: "with-everything", summary: "Leave nothing to defaults", media: mediaJSON,
				body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 5}, "idempotencyKey": "order-4711", "runAt": "2030-01-31T12:00:00Z",
"priority": 0, "maxAttempts": 4, "timeout": "30s", "tenant": "default", "tags": ["nightly"], "hold": false}`,
			},
		},
		answers: []sampleAnswer{{status: http.StatusAccepted, media: mediaJSON, body: sampleAccepted}},
		counted: true,
		rejections: map[int]rejection{
			http.StatusUnprocessableEntity: {
				why: "The body was understood, but a value in it cannot be accepted: the job type is unknown, the payload does not fit its schema, the key was used for something else",
				example: invalid(
					at("#/payload/sleepSeconds", "must be at most 300"), at("#/priority", "must be a whole number from -32767 to 32767")),
			},
		},
	},
	"submit-jobs": {
		requests: []sampleRequest{
			{
				name: "array", summary: "An array", media: mediaJSON,
				body: `[{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}, {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 2}}]`,
			},
			{
				name: "lines", summary: "One a line", media: mediaLines,
				body: `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}` + "\n" + `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 2}}` + "\n",
			},
		},
		answers: []sampleAnswer{
			{status: http.StatusAccepted, media: mediaJSON, body: v1.BatchAccepted{Accepted: 1, Jobs: []v1.Accepted{sampleAccepted}}},
			{status: http.StatusAccepted, media: mediaLines, body: sampleLines(v1.BatchResult{Index: 0, Job: &sampleAccepted})},
			{status: http.StatusOK, media: mediaJSON, body: v1.BatchResults{Accepted: 1, Refused: 1, Results: sampleResults}},
			{
				status: http.StatusOK, media: mediaLines,
				body: sampleLines(sampleResults[0], sampleResults[1], v1.BatchEnd{Done: true, Accepted: 1, Refused: 1}),
			},
		},
		counted: true,
		rejections: map[int]rejection{
			http.StatusBadRequest: {
				why:     "The body is not JSON in UTF-8, is empty, or is nested too deep; or one key was sent for all of the jobs",
				example: problem(http.StatusBadRequest, "the body is not JSON: unexpected end of JSON input: line 2, column 14"),
			},
			http.StatusUnprocessableEntity: {
				why:     "A value of a job cannot be accepted, and nothing was stored",
				example: invalid(at("#/1/payload/sleepSeconds", "must be at most 300")),
			},
		},
	},
	"get-job":           {answers: just(sampleDone)},
	"list-jobs":         {answers: just(v1.JobList{Jobs: []v1.Job{sampleDone}, NextCursor: sampleCursor}), rejections: notYours()},
	"cancel-job":        {answers: just(jobThatIs(job.StatusCanceled)), rejections: wrongState("The job has succeeded or failed")},
	"hold-job":          {answers: just(jobThatIs(job.StatusPending)), rejections: wrongState("The job is not waiting for its time")},
	"release-job":       {answers: just(jobThatIs(job.StatusPending)), rejections: wrongState("The job is not waiting for its release or its time")},
	"list-job-types":    {answers: just(v1.JobTypeList{JobTypes: []v1.JobType{sampleType}})},
	"list-workers":      {answers: just(v1.WorkerList{Workers: []v1.Worker{sampleWorker}})},
	"summarize-workers": {answers: just(v1.WorkerSummary{SinceMinutes: 15, Totals: sampleCounts})},
	"inspect-job":       {answers: just(sampleDetail)},
	"get-job-logs":      {answers: just(sampleLogs)},
	"list-plugins":      {answers: just(v1.PluginList{Plugins: []v1.Plugin{samplePlugin}})},
	"swap-plugin":       {answers: sampleSwaps, rejections: noSuchPlugin()},
	"restart-plugin":    {answers: sampleSwaps, rejections: noSuchPlugin()},
	"disable-plugin":    {answers: just(samplePlugin), rejections: noSuchPlugin()},
	"enable-plugin": {answers: just(samplePlugin), rejections: map[int]rejection{
		http.StatusNotFound: noSuchPlugin()[http.StatusNotFound],
		http.StatusConflict: {why: "Its file cannot be read", example: problem(http.StatusConflict, "plugin builtin: open /opt/holdfast/handlers: permission denied")},
	}},
	"list-queues": {answers: just(v1.QueueList{Queues: []v1.Queue{sampleQueue}, Unserved: []string{}})},

	"requeue-job": {
		answers: just(jobThatIs(job.StatusPending)),
		counted: true,
		rejections: map[int]rejection{http.StatusBadRequest: {
			why: "The job is not dead-lettered", example: problem(http.StatusBadRequest, "the job is not dead-lettered"),
		}},
	},
	"list-dead-letters": {
		answers:    just(v1.DeadLetterList{DeadLetters: []v1.DeadLetter{sampleDeadLetter}, NextCursor: sampleCursor}),
		rejections: notYours(),
	},
	"retry-dead-letters": {answers: just(v1.Requeued{Count: 12}), counted: true, rejections: notYours()},

	"get-job-type": {
		answers:    just(sampleType),
		rejections: noSuchType("No handler has declared this job type", "no such job type"),
	},
	"get-job-type-schema": {
		answers: []sampleAnswer{{status: http.StatusOK, media: schemaMedia, body: json.RawMessage(
			`{"type": "object", "properties": {"sleepSeconds": {"type": "integer", "minimum": 1, "maximum": 300}}, "required": ["sleepSeconds"]}`,
		)}},
		rejections: noSuchType("No handler has declared this job type, or it takes any payload", "the job type declares no schema"),
	},

	"diagnose": {
		answers: just(sampleDiagnosis),
		rejections: map[int]rejection{http.StatusServiceUnavailable: {
			why:     "Another diagnosis is under way, this one took too long, or the database is not available",
			example: problem(http.StatusServiceUnavailable, "another diagnosis is under way"),
			headers: rejections[http.StatusServiceUnavailable].headers,
		}},
	},
	"get-metrics": {
		answers: []sampleAnswer{
			{status: http.StatusOK, media: mediaJSON, body: sampleMetrics},
			{status: http.StatusOK, media: "text/plain", body: samplePrometheus},
		},
		rejections: map[int]rejection{http.StatusNotAcceptable: {
			why: "This server has nothing for Prometheus", example: problem(http.StatusNotAcceptable, "only JSON is offered here"),
		}},
	},
}
