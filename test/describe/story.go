package describe

import (
	"encoding/json"
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The examples are about one job, the worker that runs it, and the system around
// them.
const (
	sampleCursor   = "AQGan8ZXcnb-s3B0NqkOCRXTZCiqKw5N9A"
	sampleWorkerID = "019aa3e4-1111-7a52-a4a6-2d6a4f1c9d10"
	// The digests of two versions of a plugin.
	sampleDigestBefore = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	sampleDigest       = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"

	sampleTraceID     = "0af7651916cd43dd8448eb211c80319c"
	sampleTraceParent = "00-" + sampleTraceID + "-b7ad6b7169203331-01"
	sampleError       = "SMTP: 451 try again later"
	// The fingerprint of the error, with the code 451.
	sampleFingerprint = "ec9ca7a04031f693"
)

// tooLong is a mistake in the payload of SLEEP_JOB.
var tooLong = v1.Mistake{Location: "#/payload/sleepSeconds", Message: "must be at most 300"}

var (
	sampleID, _ = job.ParseID("019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa")
	// sampleParentID is the job that submitted sampleID.
	sampleParentID, _ = job.ParseID("019aa3e5-7f10-7c3a-8b21-0d3f6a5e1c42")
	// sampleOriginalID is the job that sampleID was submitted anew from.
	sampleOriginalID, _ = job.ParseID("019aa3e1-6b30-7d11-a0f4-7c2a9e4b1d55")

	sampleTime   = time.Date(2026, 2, 20, 9, 30, 0, 0, time.UTC)
	sampleLater  = sampleTime.Add(5 * time.Second)
	sampleCounts = map[job.State]int64{job.Running: 2, job.Succeeded: 1205, job.Dead: 3}

	sampleAccepted = v1.Accepted{
		JobID: sampleID, JobType: "SLEEP_JOB", Status: job.StatusPending, CreatedAt: sampleTime, UpdatedAt: sampleTime,
	}
	sampleResults = []v1.BatchResult{
		{Index: 0, Job: &sampleAccepted},
		{Index: 1, Problem: v1.Invalid(tooLong)},
	}
	sampleDone = v1.Job{
		JobID: sampleID, JobType: "SLEEP_JOB", Status: job.StatusCompleted, CreatedAt: sampleTime, UpdatedAt: sampleLater,
		StartedAt: &sampleTime, FinishedAt: &sampleLater, Progress: json.RawMessage(`{"sleptSeconds": 5, "ofSeconds": 5}`),
	}
	sampleFound = v1.FoundJob{
		Job: v1.Job{
			JobID: sampleID, JobType: "SEND_EMAIL", Status: job.StatusPending, CreatedAt: sampleTime, UpdatedAt: sampleLater, StartedAt: &sampleTime,
		},
		State: job.Retry, Tenant: job.DefaultTenant, Tags: []string{"nightly"}, RunAt: &sampleLater, AttemptsCharged: 1, MaxAttempts: 4,
		Worker: sampleWorkerID, ErrorCode: "451", LastError: sampleError,
	}
	sampleDeadLetter = v1.DeadLetter{
		JobID: sampleID, JobType: "SEND_EMAIL", Tenant: job.DefaultTenant, DeadAt: sampleLater, Attempts: 4, LastError: sampleError,
		ErrorCode: "451", Fingerprint: sampleFingerprint,
	}
	sampleGroups = v1.DeadLetterGroups{Groups: []v1.DeadLetterGroup{{
		JobType: "SEND_EMAIL", ErrorCode: "451", Fingerprint: sampleFingerprint, Message: job.ErrorPattern(sampleError), Count: 3,
		FirstDeadAt: sampleTime, LastDeadAt: sampleLater, Versions: []string{"v1.0.0"}, SampleIDs: []job.ID{sampleID},
		Recent: append(make([]int64, 22), 1, 2),
	}}}
	sampleType = v1.JobType{
		JobType: "SLEEP_JOB", Plugin: "builtin", Version: "v1.0.0", Description: "Sleeps for the given number of seconds.", MaxAttempts: 4, TimeoutSeconds: 330, HasSchema: true,
		Terms: &v1.Terms{ConcurrencyKey: "/customerId", KeyClass: "customer", ConcurrencyLimit: 1, OnConflict: job.ConflictQueue, FairnessKey: "/region"},
		Retry: v1.Retry{Backoff: job.Exponential, InitialDelaySeconds: 1, Factor: 2, MaxDelaySeconds: 300, JitterMin: 0.9, JitterMax: 1.1},
	}
	sampleWorker = v1.Worker{
		WorkerID: sampleWorkerID, Host: "jobs-1", PID: 4711, Roles: job.AllRoles(), Condition: job.WorkerAlive, StartedAt: sampleTime,
		LastHeartbeat: sampleLater, Plugins: json.RawMessage(`[]`), Jobs: sampleCounts,
	}
	sampleQueue = v1.Queue{
		JobType: "SEND_EMAIL", Queued: 3, OldestQueuedSeconds: 0.8, Scheduled: 12, Held: 1, Retrying: 2, Running: 2, Dead: 3, Served: true,
		Waiting: map[job.WaitReason]int64{job.WaitKey: 1, job.WaitClaim: 2},
	}
	samplePlugin = v1.Plugin{
		PluginVersion: v1.PluginVersion{Version: "v1.1.0", SHA256: sampleDigest}, Name: "builtin", Path: "/opt/holdfast/handlers",
		State: job.PluginUp, JobTypes: []string{"SLEEP_JOB", "SEND_EMAIL"}, PIDs: []int{4712}, Processes: 1, Running: 2, Free: 98,
		Limits:   []v1.Enforcement{{Limit: "memory", Value: 512 << 20, By: "cgroup"}},
		Use:      []v1.PluginUse{{PID: 4712, Memory: 38 << 20, CPUs: 0.25, Processes: 14}},
		LastSwap: &sampleSwap,
	}
	sampleSwap = v1.PluginSwap{
		Trigger: job.SwapByFile, From: v1.PluginVersion{Version: "v1.0.0", SHA256: sampleDigestBefore},
		To: v1.PluginVersion{Version: "v1.1.0", SHA256: sampleDigest}, BegunAt: sampleTime, EndedAt: &sampleLater, Result: job.SwapPromoted,
	}
	sampleSwaps = []answer{
		{status: http.StatusOK, media: mediaJSON, body: sampleSwap, says: "It has ended."},
		{status: http.StatusAccepted, media: mediaJSON, says: "It is in progress.", body: v1.PluginSwap{
			Trigger: job.SwapByRequest, From: sampleSwap.From, To: sampleSwap.To, BegunAt: sampleTime,
		}},
	}
	sampleDetail = v1.JobDetail{
		Job: v1.Job{
			JobID: sampleID, JobType: "SEND_EMAIL", Status: job.StatusRunning, CreatedAt: sampleTime, UpdatedAt: sampleLater, StartedAt: &sampleLater,
		},
		State: job.Running, Tenant: job.DefaultTenant,
		Payload:        json.RawMessage(`{"to": ["user@example.com"], "subject": "Welcome", "text": "Hello!"}`),
		IdempotencyKey: "order-4711", Tags: []string{"nightly"}, ParentID: &sampleParentID, ResubmissionOf: &sampleOriginalID, RunAt: &sampleTime,
		CallbackURL:    "https://example.com/hook",
		ConcurrencyKey: "smtp:eu", ConcurrencyLimit: 3, OnConflict: job.ConflictQueue, FairnessKey: "newsletter",
		AttemptsCharged: 2, MaxAttempts: 4, Fence: 2, TimeoutSeconds: 30, LastError: sampleError, Worker: sampleWorkerID, TraceParent: sampleTraceParent, TraceID: sampleTraceID,
		TraceURL: "http://localhost:16686/trace/" + sampleTraceID,
		Lease:    &v1.Lease{Worker: sampleWorkerID, DueAt: &sampleTime, ClaimedAt: sampleLater, BeganAt: new(sampleLater.Add(time.Millisecond)), ExpiresAt: sampleLater.Add(30 * time.Second)},
		Attempts: []v1.Attempt{{
			Number: 1, Fence: 1, Outcome: job.Failure, Worker: sampleWorkerID, Plugin: "builtin", PluginVersion: "v1.0.0",
			DueAt: &sampleTime, ClaimedAt: sampleTime, BeganAt: &sampleTime, DoneAt: new(sampleTime.Add(2 * time.Second)),
			EndedAt: sampleTime.Add(2 * time.Second), DurationSeconds: 2, Code: "451", Error: sampleError,
			SpanID: "00f067aa0ba902b7",
		}},
	}
	sampleTree = v1.JobTree{Jobs: []v1.TreeJob{
		{
			JobID: sampleParentID, JobType: "IMPORT", Status: job.StatusCompleted, State: job.Succeeded,
			CreatedAt: sampleTime.Add(-time.Second), StartedAt: &sampleTime, FinishedAt: &sampleTime,
		},
		{
			JobID: sampleID, ParentID: &sampleParentID, Depth: 1, JobType: "SEND_EMAIL", Status: job.StatusRunning, State: job.Running,
			CreatedAt: sampleTime, StartedAt: &sampleLater,
		},
	}}
	sampleLogs = v1.JobLogs{JobID: sampleID, Attempts: []v1.AttemptLog{{Number: 1, Fence: 1, Lines: []v1.LogLine{
		{Time: sampleTime, Level: job.LogInfo, Message: "connected", Attributes: json.RawMessage(`{"server": "mail.example.com"}`)},
		{Time: sampleTime.Add(2 * time.Second), Level: job.LogWarn, Message: "the server is busy"},
	}}}}
	sampleDiagnosis = v1.Diagnosis{Severity: job.Warning, Checks: []v1.Check{{
		Name: "unserved_types", Severity: job.Warning, Summary: "Jobs wait for a handler that no live worker has.",
		Details: []string{"SEND_FAX: 3 jobs"}, Remedy: "Start an orchestrator with a handler for the type, or cancel its jobs.",
	}}}
	sampleSeries = v1.Series{
		At: sampleLater, Window: v1.QuarterHour, SlotSeconds: 10,
		Slots: []v1.SeriesSlot{
			{
				Start: sampleTime.Add(-10 * time.Second), Submitted: 60, Succeeded: 57, Retried: 4, Dead: 1, Open: 12,
				Wait: &v1.SeriesLatency{Attempts: 62, P50: 0.004, P95: 0.11, P99: 0.25}, Run: &v1.SeriesLatency{Attempts: 62, P50: 1.2, P95: 4.8, P99: 7.1},
			},
			{Start: sampleTime, Partial: true, Submitted: 30, Succeeded: 32, Open: 10},
		},
		JobTypes: []v1.SeriesType{{JobType: "SEND_EMAIL", Ended: []int64{62, 32}, Failed: []int64{5, 0}}},
	}
	sampleMetrics = v1.Metrics{
		At: sampleLater,
		StatusCounts: map[job.State]int64{
			job.Created: 0, job.Queued: 0, job.Running: 2, job.Retry: 0, job.Succeeded: 1205, job.Dead: 3, job.Canceled: 0,
		},
		ByWorker:            map[string]map[job.State]int64{sampleWorkerID: sampleCounts},
		AttemptDistribution: map[int]int64{0: 18, 1: 1190, 2: 17}, ScheduledForRetry: 2,
		Recent:                      v1.Recent{SinceMinutes: 5, Submitted: 60, Succeeded: 57, Dead: 1, FailedAttempts: 4},
		ProcessedLastMinute:         12,
		FailuresByJobType:           map[string]int64{"SEND_EMAIL": 41},
		AvgDurationSecondsByJobType: map[string]float64{"SEND_EMAIL": 0.42},
		Queues:                      []v1.Queue{sampleQueue},
		Limits:                      []v1.LimitUse{{Scope: job.LimitTenant, Name: "acme", Used: 3, Slots: 5}},
		OldestSnapshotSeconds:       1.5, SnapshotAgeTransactions: 12,
	}
)

const samplePrometheus = `# HELP holdfast_jobs Jobs in the ledger, by state.
# TYPE holdfast_jobs gauge
holdfast_jobs{state="queued"} 3
`

// jobThatIs is a job that has never run.
func jobThatIs(status job.Status) v1.Job {
	return v1.Job{JobID: sampleID, JobType: "SLEEP_JOB", Status: status, CreatedAt: sampleTime, UpdatedAt: sampleLater}
}

// notYours is for lists, which are restricted to the caller's tenant.
func notYours() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "The tenant is not that of the credentials", example: v1.NewProblem(http.StatusNotFound, "no such tenant"),
	}}
}

func wrongState(why string) map[int]rejection {
	return map[int]rejection{http.StatusConflict: {
		why: why, example: v1.NewProblem(http.StatusConflict, "the job's state does not allow this"),
	}}
}

// badEdit adds the rejections of bodies with an edit.
func badEdit(others map[int]rejection) map[int]rejection {
	others[http.StatusUnsupportedMediaType] = rejection{
		why: "The Content-Type is not one that the operation takes",
		example: v1.NewProblem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/merge-patch+json or application/json, and no Content-Encoding"),
	}
	others[http.StatusUnprocessableEntity] = rejection{
		why:     "A value in the request cannot be accepted",
		example: v1.Invalid(v1.Mistake{Location: "#/delay", Message: "excludes runAt"}),
	}
	return others
}

func noSuchType(why, detail string) map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {why: why, example: v1.NewProblem(http.StatusNotFound, detail)}}
}

func noSuchPlugin() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "This orchestrator has no plugin of that name", example: v1.NewProblem(http.StatusNotFound, "this orchestrator has no plugin of that name"),
	}}
}

var (
	sampleRate  = job.Rate{Count: 100, Period: time.Minute, Burst: 10}
	sampleLimit = v1.LimitOf(job.Limit{
		Scope: job.LimitType, Name: "SEND_EMAIL", Concurrency: new(10), Rate: &sampleRate, UpdatedBy: "token ops", UpdatedAt: sampleSince,
	}, new(3))
	samplePause = v1.PauseOf(job.Pause{
		Scope: job.PauseType, Name: "SEND_EMAIL", Reason: "migration", By: "token ops", Since: sampleSince, Until: sampleSince.Add(time.Hour),
	})
	sampleHalt    = v1.PauseOf(job.Pause{Scope: job.PauseAll, Reason: "incident 42", By: "admin", Since: sampleSince, Drain: true})
	pauseRequests = []request{
		{name: "for", summary: "For an hour", media: mediaJSON, body: `{"reason": "migration", "for": "1h"}`},
		{name: "drain", summary: "Until it is ended, and stop what runs", media: mediaJSON, body: `{"reason": "incident 42", "drain": true}`},
	}
	sampleSince = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
)

func drainedWorker() v1.Worker {
	worker := sampleWorker
	worker.Condition = job.WorkerDraining
	return worker
}

func noSuchLimit() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "There is no such limit", example: v1.NewProblem(http.StatusNotFound, job.ErrNoLimit.Error()),
	}}
}

func noSuchPause() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "There is no such pause", example: v1.NewProblem(http.StatusNotFound, job.ErrNoPause.Error()),
	}}
}

func noSuchWorker() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "There is no such worker, or it has stopped or runs no jobs", example: v1.NewProblem(http.StatusNotFound, job.ErrNoWorker.Error()),
	}}
}

func nothingNamed() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "A part of the path is empty", example: v1.NewProblem(http.StatusNotFound, "no such resource"),
	}}
}

func isConfigured(rejections map[int]rejection) map[int]rejection {
	rejections[http.StatusConflict] = rejection{
		why:     "A configuration sets the limit",
		example: v1.NewProblem(http.StatusConflict, "a configuration sets this limit: change it there, under limits, and reload it with SIGHUP"),
	}
	return rejections
}
