package api

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

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
