package api

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Submission describes the body of POST /jobs in the OpenAPI document. A
// member that is absent or null takes its default.
type Submission struct {
	JobType        string          `json:"jobType" minLength:"1" maxLength:"200" example:"SEND_EMAIL" doc:"The kind of work. A handler must have declared it."`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"Any JSON value, kept to the letter; null when absent."`
	IdempotencyKey *string         `json:"idempotencyKey,omitempty" nullable:"true" minLength:"1" maxLength:"255" doc:"Names this request: sent again, it finds the job that it made. The same as the Idempotency-Key header."`
	Priority       *int            `json:"priority,omitempty" nullable:"true" minimum:"-32767" maximum:"32767" doc:"Higher is more urgent; 0 when absent."`
	RunAt          *time.Time      `json:"runAt,omitempty" nullable:"true" doc:"Not before this instant (RFC 3339). Excludes delay."`
	Delay          *string         `json:"delay,omitempty" nullable:"true" example:"30s" doc:"Not before this much time has passed: a Go duration such as 90s or 1h30m, at most ten years (87600h). Excludes runAt."`
	MaxAttempts    *int            `json:"maxAttempts,omitempty" nullable:"true" minimum:"1" maximum:"1000" doc:"How often a handler may be started for the job; the job type's own number when absent."`
	Timeout        *string         `json:"timeout,omitempty" nullable:"true" example:"30s" doc:"Bound on each attempt: a Go duration, 1ms to 24h; the job type's own when absent."`
	Tenant         *string         `json:"tenant,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Whose job it is; default when absent. Idempotency keys are unique within a tenant."`
	Tags           []string        `json:"tags,omitempty" nullable:"true" maxItems:"20" doc:"Words of up to 100 characters to find the job by."`
	Hold           *bool           `json:"hold,omitempty" nullable:"true" doc:"Keep the job until it is released."`
}

const (
	maxNameChars = 200
	maxKeyBytes  = 255
	maxTags      = 20
	maxTagChars  = 100

	// The lowest smallint is left out, so that a priority can be negated.
	minPriority = -32767
	maxPriority = 32767

	maxAttempts = 1000
	minTimeout  = time.Millisecond
	maxTimeout  = 24 * time.Hour
	maxDelay    = 10 * 365 * 24 * time.Hour
)

// request is a decoded Submission. Nil is absent.
type request struct {
	jobType     string
	payload     json.RawMessage
	key         *string
	priority    *int
	runAt       *time.Time
	delay       *time.Duration
	maxAttempts *int
	timeout     *time.Duration
	tenant      *string
	tags        *[]string
	hold        *bool
	trace       job.Trace
}

// members reads each member of the body into a request.
var members = map[string]func(*request, json.RawMessage) error{
	"jobType":        func(r *request, v json.RawMessage) (err error) { r.jobType, err = name(v); return err },
	"payload":        func(r *request, v json.RawMessage) error { r.payload = v; return nil },
	"idempotencyKey": optional(func(r *request) **string { return &r.key }, key),
	"priority":       optional(func(r *request) **int { return &r.priority }, number(minPriority, maxPriority)),
	"runAt":          optional(func(r *request) **time.Time { return &r.runAt }, instant),
	"delay":          optional(func(r *request) **time.Duration { return &r.delay }, duration(0, maxDelay)),
	"maxAttempts":    optional(func(r *request) **int { return &r.maxAttempts }, number(1, maxAttempts)),
	"timeout":        optional(func(r *request) **time.Duration { return &r.timeout }, duration(minTimeout, maxTimeout)),
	"tenant":         optional(func(r *request) **string { return &r.tenant }, name),
	"tags":           optional(func(r *request) **[]string { return &r.tags }, tags),
	"hold":           optional(func(r *request) **bool { return &r.hold }, boolean),
}
