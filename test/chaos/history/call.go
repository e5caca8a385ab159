package history

import (
	"strconv"
	"time"
)

// Verb is what a client asked for.
type Verb string

// The verbs. Get and Lookup only read: a job by its id, or by its key. A client that sends
// a submission again, to learn what became of it, makes another call of Submit.
const (
	Submit Verb = "submit"
	Batch  Verb = "batch"
	// Workflow submits jobs that come after one another.
	Workflow Verb = "workflow"
	Cancel   Verb = "cancel"
	Requeue  Verb = "requeue"
	Redrive  Verb = "redrive"
	Hold     Verb = "hold"
	Release  Verb = "release"
	Get      Verb = "get"
	Lookup   Verb = "lookup"
)

// Outcome says what the client knows of a call.
type Outcome string

// The outcomes.
const (
	// OK was answered with success. It has happened.
	OK Outcome = "ok"
	// Refused was answered with 4xx. It has not happened.
	Refused Outcome = "refused"
	// Unknown was answered with 5xx, with something unreadable, or not at all. It may have
	// happened, or may happen at any later time.
	Unknown Outcome = "unknown"
)

// Call is one call of the API.
type Call struct {
	// Client and Number identify the call. A client makes one call at a time.
	Client string `json:"client"`
	Number int    `json:"number"`
	Verb   Verb   `json:"verb"`
	// Server is the orchestrator that was asked.
	Server string `json:"server,omitempty"`
	// Tenant is that of the jobs; for a lookup, where it looked.
	Tenant string `json:"tenant,omitempty"`
	// Key is what a lookup looked for, or that of a workflow.
	Key string `json:"key,omitempty"`
	// JobID is what any verb but Submit, Batch, Redrive and Lookup was about.
	JobID string `json:"jobId,omitempty"`
	// Submissions are those of Submit, which has one, Batch and Workflow.
	Submissions []Submission `json:"submissions,omitempty"`

	Started  Nanos   `json:"started"`
	Returned Nanos   `json:"returned"`
	Outcome  Outcome `json:"outcome"`
	// Code is the HTTP status; 0 without an answer. Error is for people.
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`

	// Found is the job's id in the answer of a lookup; empty if there was none.
	Found string `json:"found,omitempty"`
	// Status is the job's status in the answer: PENDING, RUNNING, COMPLETED, FAILED or
	// CANCELED.
	Status string `json:"status,omitempty"`
	// Count is the number of jobs that a redrive requeued.
	Count int `json:"count,omitempty"`
}

// Submission is a job that a client wanted to have.
type Submission struct {
	// Mark names the submission and is unique in the run. The client sends it as a tag
	// ([MarkTag]), so that a job can be traced to it even if no answer came. A client that
	// sends the same submission again sends the same mark.
	Mark string `json:"mark"`
	// Key is the idempotency key; empty for none.
	Key     string `json:"key,omitempty"`
	JobType string `json:"jobType"`
	// MaxAttempts is what was asked for; 0 for the job type's.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// Delay is how long after its submission the job may begin.
	Delay time.Duration `json:"delay,omitempty"`
	// TTL is how long after its submission the job expires, unless it has started; 0 for never.
	TTL time.Duration `json:"ttl,omitempty"`
	// After are the marks of the jobs of the same workflow that must end first.
	After []string `json:"after,omitempty"`
	// JobID is the job's id in the answer; empty without one. Duplicate says that the
	// answer named another job, because the submission was kept out.
	JobID     string `json:"jobId,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"`
	// Status is the job's in the answer.
	Status string `json:"status,omitempty"`
}

// MarkTag is the tag that carries the mark of a submission.
func MarkTag(mark string) string { return markPrefix + mark }

// FenceTag is the tag of a job that a handler submits: the fence of its attempt.
func FenceTag(fence int64) string { return fencePrefix + strconv.FormatInt(fence, 10) }

// ChildMark is in the payload of a job that a handler submits. Others have the mark of their
// submission there, or [TickMark].
func ChildMark(parent string) string { return "child of " + parent }

// TickMark is in the payload of a schedule's jobs.
const TickMark = "tick"

const (
	markPrefix  = "mark:"
	fencePrefix = "fence:"
)
