package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// JobDetail is everything that operators can see of a job.
type JobDetail struct {
	Job
	State          job.State       `json:"state" enum:"created,queued,running,retry,succeeded,dead,canceled" doc:"The exact state behind the status."`
	Tenant         string          `json:"tenant"`
	Payload        json.RawMessage `json:"payload" payloads:"withhold" doc:"Any JSON value, exactly as it was submitted. null if payloadsWithheld."`
	Checkpoint     json.RawMessage `json:"checkpoint,omitempty" payloads:"withhold" doc:"Where the next attempt resumes: any JSON value."`
	IdempotencyKey string          `json:"idempotencyKey,omitempty"`
	Tags           []string        `json:"tags" nullable:"false"`
	Priority       int16           `json:"priority"`
	ParentID       *job.ID         `json:"parentId,omitempty" format:"uuid" doc:"The job that submitted this one. Absent if a client did."`
	CallbackURL    string          `json:"callbackUrl,omitempty" payloads:"origin" doc:"Whom to tell when the job has ended. Without the scope payloads, only its scheme, host and port: the rest is often a secret. Absent if the job tells nobody, or was erased."`
	WorkflowID     *job.ID         `json:"workflowId,omitempty" format:"uuid" doc:"The workflow that the job belongs to. Absent if it belongs to none."`
	ResubmissionOf *job.ID         `json:"resubmissionOf,omitempty" format:"uuid" doc:"The job that this one was submitted anew from. It may be gone. Absent if there was none."`
	Resubmissions  []job.ID        `json:"resubmissions,omitempty" nullable:"false" doc:"The ten newest jobs that were submitted anew from this one, newest first. Absent if there are none."`
	RunAt          *time.Time      `json:"runAt,omitempty" doc:"When the job is, or was, due. Absent while it is held."`
	ExpiresAt      *time.Time      `json:"expiresAt,omitempty" doc:"The job is canceled unless it has started by then. Absent if that does not count, or not any more."`
	Held           bool            `json:"held" doc:"Whether it waits to be released."`

	ConcurrencyKey   string         `json:"concurrencyKey,omitempty" doc:"What the job uses. Jobs of a tenant with the same key share its limit. Absent if it has none."`
	ConcurrencyLimit int            `json:"concurrencyLimit,omitempty" doc:"How many jobs of the key may run when this one starts. Absent for the limit of the key's class."`
	OnConflict       job.OnConflict `json:"onConflict,omitempty" enum:"queue,cancel_newcomer,cancel_oldest" doc:"What happens if so many run. Absent for what the limit of the key's class says."`
	FairnessKey      string         `json:"fairnessKey,omitempty" doc:"Who takes a turn. Absent if it has none: its tenant takes a turn, if its type is fair."`

	AttemptsCharged int       `json:"attemptsCharged" doc:"How many attempts count against maxAttempts, including the running one."`
	MaxAttempts     int       `json:"maxAttempts"`
	Interruptions   int       `json:"interruptions" doc:"How many attempts were lost with their worker. They are not charged."`
	Crashes         int       `json:"crashes" doc:"How many plugin processes have died while they ran the job, since an attempt last ended in another way. Above 0, the job runs isolated: in a process that runs nothing else."`
	Fence           int64     `json:"fence" doc:"The fencing token of the latest attempt. It only grows."`
	TimeoutSeconds  float64   `json:"timeoutSeconds" doc:"Time limit of each attempt."`
	LastError       string    `json:"lastError,omitempty"`
	Waits           []Wait    `json:"waits,omitempty" nullable:"false" doc:"What the job waits for, the most lasting first. Absent if it does not wait."`
	Worker          string    `json:"worker,omitempty" doc:"The worker that ran the latest attempt."`
	TraceParent     string    `json:"traceParent,omitempty" doc:"The W3C trace context that the job was submitted with."`
	TraceID         string    `json:"traceId,omitempty" doc:"The id of the job's trace."`
	TraceURL        string    `json:"traceUrl,omitempty" doc:"Where to see the trace. Present if tracing.trace_url_template is configured and the trace is sampled."`
	Lease           *Lease    `json:"lease,omitempty" doc:"Present while the job is running."`
	Attempts        []Attempt `json:"attempts" nullable:"false" doc:"The attempts that have ended, oldest first."`
}

// Lease is a lease as operators see it.
type Lease struct {
	Worker          string     `json:"worker"`
	DueAt           *time.Time `json:"dueAt,omitempty" doc:"When the job was due."`
	ClaimedAt       time.Time  `json:"claimedAt"`
	BeganAt         *time.Time `json:"beganAt,omitempty" doc:"When the handler was started. Absent until its worker has renewed the lease since."`
	ExpiresAt       time.Time  `json:"expiresAt"`
	CancelRequested bool       `json:"cancelRequested"`
}

// Wait is one thing that a job waits for.
type Wait struct {
	Reason  job.WaitReason `json:"reason" enum:"scheduled,held,predecessors,retry,paused,unserved,concurrency_key,concurrency_tenant,concurrency_type,rate,turn,claim" doc:"claim: a worker takes it when the jobs before it are taken and a slot of its plugin is free."`
	Message string         `json:"message" doc:"The same in words. They may change."`
	Until   *time.Time     `json:"until,omitempty" doc:"When it should be over, if that is known. For a rate, it is an estimate."`
	Pause   *WaitPause     `json:"pause,omitempty" doc:"What is paused. Present if the reason is paused."`
	Gate    *WaitGate      `json:"gate,omitempty" doc:"What has a limit. Present if the job waits for a slot of it, or for its rate, or for its turn there."`
	Ahead   int            `json:"ahead" maximum:"1000" doc:"How many jobs come first, counted up to 1000."`
}

// WaitPause is a pause that a job waits for.
type WaitPause struct {
	Scope  job.PauseScope `json:"scope" enum:"type,plugin,tenant,all"`
	Name   string         `json:"name,omitempty" doc:"Of the type, the plugin or the tenant."`
	Reason string         `json:"reason,omitempty"`
	By     string         `json:"by,omitempty" doc:"Who paused it."`
	Since  time.Time      `json:"since"`
}

// WaitGate is a limit that a job waits for.
type WaitGate struct {
	Scope  job.GateKind `json:"scope" enum:"key,tenant,type"`
	Name   string       `json:"name" doc:"The concurrency key, the tenant or the type."`
	Used   int          `json:"used" doc:"How many jobs run, or are about to."`
	Limit  *int         `json:"limit,omitempty" doc:"How many may. Absent if any number may."`
	Rate   int          `json:"rate,omitempty" doc:"How many may start in periodSeconds. Absent if any number may."`
	Period float64      `json:"periodSeconds,omitempty"`
}

func waitOf(w job.Wait) Wait {
	wait := Wait{Reason: w.Reason, Message: w.Message, Ahead: w.Ahead}
	if !w.Until.IsZero() {
		wait.Until = utc(&w.Until)
	}
	if p := w.Pause; p != nil {
		wait.Pause = &WaitPause{Scope: p.Scope, Name: p.Name, Reason: p.Reason, By: p.By, Since: p.Since.UTC()}
	}
	if w.Gate != "" {
		wait.Gate = &WaitGate{Scope: w.Gate.Kind(), Name: w.Gate.Name(), Used: w.Used, Limit: w.Limit}
		if w.Rate != nil {
			wait.Gate.Rate, wait.Gate.Period = w.Rate.Count, w.Rate.Period.Seconds()
		}
	}
	return wait
}

// Attempt is one run of a handler that has ended.
type Attempt struct {
	Number          int             `json:"number" doc:"Counts charged attempts from 1. It starts again after a requeue."`
	Fence           int64           `json:"fence"`
	Outcome         job.OutcomeKind `json:"outcome" enum:"succeeded,failed,permanent,timeout,crashed,suspected,lease_expired,interrupted,given_back,snoozed,canceled"`
	Worker          string          `json:"worker"`
	Plugin          string          `json:"plugin,omitempty"`
	PluginVersion   string          `json:"pluginVersion,omitempty"`
	DueAt           *time.Time      `json:"dueAt,omitempty" doc:"When the job was due. A job that was not charged for its last attempt keeps its place, so this can be before the end of that attempt. Absent if an earlier version of Holdfast ended the attempt."`
	ClaimedAt       time.Time       `json:"claimedAt"`
	BeganAt         *time.Time      `json:"beganAt,omitempty" doc:"When the handler was started. Absent if it was not, or if that is not known: its worker was lost before it renewed the lease."`
	DoneAt          *time.Time      `json:"doneAt,omitempty" doc:"When the handler was done or its process gone; from then until endedAt, the job waited for the lease to run out, or for the database. If the worker was lost, its last sign of life. Absent if the attempt succeeded, if the handler was not started, or if it is not known."`
	EndedAt         time.Time       `json:"endedAt"`
	DurationSeconds float64         `json:"durationSeconds" doc:"From claimedAt to endedAt."`
	Code            string          `json:"code,omitempty" doc:"The kind of error."`
	Error           string          `json:"error,omitempty"`
	Stack           string          `json:"stack,omitempty"`
	SpanID          string          `json:"spanId,omitempty" doc:"The attempt's span within the trace."`
}

// JobDetailOf returns everything about a job but TraceURL.
func JobDetailOf(d job.Detail) JobDetail {
	detail := JobDetail{
		Job: JobOf(d.View), State: d.State, Tenant: d.Tenant, Payload: d.Payload, Checkpoint: d.Checkpoint,
		IdempotencyKey: d.IdempotencyKey, Tags: append([]string{}, d.Tags...), Priority: d.Priority, ParentID: parentOf(d.Parent),
		WorkflowID: parentOf(d.Workflow), ResubmissionOf: parentOf(d.ResubmissionOf), Resubmissions: d.Resubmissions, CallbackURL: d.Callback,
		Held:           d.State == job.Created && d.RunAt.IsZero(),
		ConcurrencyKey: d.Terms.ConcurrencyKey, ConcurrencyLimit: d.Terms.ConcurrencyLimit, OnConflict: d.Terms.OnConflict,
		FairnessKey: d.Terms.FairnessKey, AttemptsCharged: d.Charged, MaxAttempts: d.MaxAttempts,
		Interruptions: d.Interruptions, Crashes: d.Crashes, Fence: d.Fence, TimeoutSeconds: d.Timeout.Seconds(),
		LastError: d.LastError, Worker: d.Worker, TraceParent: d.Trace.Parent, TraceID: d.Trace.ID(),
		Attempts: listOf(d.Attempts, attemptOf),
	}
	if len(d.Waits) > 0 {
		detail.Waits = listOf(d.Waits, waitOf)
	}
	if !d.RunAt.IsZero() {
		detail.RunAt = utc(&d.RunAt)
	}
	if !d.ExpiresAt.IsZero() {
		detail.ExpiresAt = utc(&d.ExpiresAt)
	}
	if l := d.Lease; l != nil {
		detail.Lease = &Lease{
			Worker: l.Worker, DueAt: detail.RunAt, ClaimedAt: l.ClaimedAt.UTC(), BeganAt: utc(l.BeganAt), ExpiresAt: l.ExpiresAt.UTC(), CancelRequested: l.CancelRequested,
		}
	}
	return detail
}

func attemptOf(a job.Attempt) Attempt {
	return Attempt{
		Number: a.Number, Fence: a.Fence, Outcome: a.Outcome, Worker: a.WorkerID, Plugin: a.Plugin, PluginVersion: a.PluginVersion,
		DueAt: utc(a.DueAt), ClaimedAt: a.ClaimedAt.UTC(), BeganAt: utc(a.BeganAt), DoneAt: utc(a.DoneAt), EndedAt: a.EndedAt.UTC(), DurationSeconds: a.EndedAt.Sub(a.ClaimedAt).Seconds(),
		Code: a.Code, Error: a.Error, Stack: a.Stack, SpanID: a.SpanID,
	}
}

// JobLogs is what the handler of a job has logged.
type JobLogs struct {
	JobID    job.ID       `json:"jobId" format:"uuid"`
	Attempts []AttemptLog `json:"attempts" nullable:"false" doc:"The latest attempts that have logged anything, at most 20, oldest first. Attempts can have the same number; fence identifies them."`
}

// AttemptLog is what one attempt has logged, during or after it.
type AttemptLog struct {
	Number  int       `json:"number" doc:"The number of the attempt in the job's attempts."`
	Fence   int64     `json:"fence"`
	Dropped int64     `json:"dropped" doc:"How many earlier lines were not kept. The last 200 lines of an attempt are kept, or fewer if their text exceeds 32 KB."`
	Lines   []LogLine `json:"lines" nullable:"false" doc:"Oldest first."`
}

// LogLine is one record that a handler has logged.
type LogLine struct {
	Time       time.Time       `json:"time" doc:"By the handler's clock."`
	Level      job.LogLevel    `json:"level" enum:"debug,info,warn,error"`
	Message    string          `json:"message" doc:"As the handler wrote it. It can hold any characters."`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"A JSON object."`
	Truncated  bool            `json:"truncated,omitempty" doc:"Whether the message was cut, or attributes were left out, because they were too long."`
}

// JobLogsOf returns the logs of a job's attempts.
func JobLogsOf(id job.ID, logs []job.AttemptLog) JobLogs {
	return JobLogs{JobID: id, Attempts: listOf(logs, func(l job.AttemptLog) AttemptLog {
		return AttemptLog{Number: l.Number, Fence: l.Fence, Dropped: l.Dropped, Lines: listOf(l.Lines, func(line job.LogLine) LogLine {
			return LogLine{
				Time: line.Time.UTC(), Level: line.Level, Message: line.Message, Attributes: line.Attributes, Truncated: line.Truncated,
			}
		})}
	})}
}
