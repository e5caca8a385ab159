package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Resubmission is the body of POST /debug/jobs/{id}/resubmit: what is to be different about
// the new job, as a JSON Merge Patch of a Submission. A member that is null takes the default
// of a submission. The server reads it with the package submission.
type Resubmission struct {
	Payload        json.RawMessage `json:"payload,omitempty" doc:"Any JSON value. It is stored exactly as you send it. Absent for that of the job."`
	IdempotencyKey *string         `json:"idempotencyKey,omitempty" nullable:"true" minLength:"1" maxLength:"255" doc:"Names this request. If you send it again, the answer names the job that the first one made. Same as the Idempotency-Key header. The job has none unless you give one."`
	Priority       *int            `json:"priority,omitempty" nullable:"true" minimum:"-32767" maximum:"32767" doc:"Higher is more urgent. Absent for that of the job."`
	RunAt          *time.Time      `json:"runAt,omitempty" nullable:"true" doc:"Do not start before this time (RFC 3339). Excludes delay."`
	Delay          *string         `json:"delay,omitempty" nullable:"true" example:"30s" doc:"Do not start before this much time has passed: a Go duration such as 90s or 1h30m, at most ten years (87600h). Excludes runAt."`
	MaxAttempts    *int            `json:"maxAttempts,omitempty" nullable:"true" minimum:"1" maximum:"1000" doc:"How many attempts the job may take. Absent for those of the job."`
	Timeout        *string         `json:"timeout,omitempty" nullable:"true" example:"30s" doc:"Time limit of each attempt: a Go duration from 1ms to 24h. Absent for that of the job."`
	Tags           []string        `json:"tags,omitempty" nullable:"true" maxItems:"20" doc:"Words of up to 100 characters, to find the job by. Absent for those of the job."`
	Hold           *bool           `json:"hold,omitempty" nullable:"true" doc:"Keep the job until you release it."`

	ConcurrencyKey   *string         `json:"concurrencyKey,omitempty" nullable:"true" minLength:"1" maxLength:"200" example:"customer:42" doc:"What the job uses. Absent for that of the job; or if that came from its payload, what the new payload says."`
	ConcurrencyLimit *int            `json:"concurrencyLimit,omitempty" nullable:"true" minimum:"1" maximum:"100000" doc:"How many jobs of the key may run when this one starts, itself included. Absent for that of the job."`
	OnConflict       *job.OnConflict `json:"onConflict,omitempty" nullable:"true" enum:"queue,cancel_newcomer,cancel_oldest" doc:"What happens if so many run. Absent for that of the job."`
	FairnessKey      *string         `json:"fairnessKey,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Who takes a turn. Absent for that of the job; or if that came from its payload, what the new payload says."`
	ExpiresAt        *time.Time      `json:"expiresAt,omitempty" nullable:"true" doc:"Cancel the job if it has not started by this time (RFC 3339). It must be in the future and after the job is due. Excludes ttl."`
	TTL              *string         `json:"ttl,omitempty" nullable:"true" example:"1h" doc:"Cancel the job if it has not started when this much time has passed: a Go duration from 1ms to ten years (87600h), longer than delay. Excludes expiresAt."`
	UniqueFor        *string         `json:"uniqueFor,omitempty" nullable:"true" example:"1h" doc:"Make no other job like this one for so long: a Go duration from 1ms to ten years (87600h). Alike are jobs of the same tenant and type whose uniqueBy members are equal. Excludes uniqueWhile."`
	UniqueWhile      *string         `json:"uniqueWhile,omitempty" nullable:"true" enum:"open" doc:"Make no other job like this one while it waits or runs. Excludes uniqueFor."`
	UniqueBy         []string        `json:"uniqueBy,omitempty" nullable:"true" minItems:"1" maxItems:"10" doc:"JSON Pointers (RFC 6901) to what must be equal in the payloads of jobs that are alike. An absent member differs from null. The default is the whole payload. Needs uniqueFor or uniqueWhile."`

	CallbackURL *string `json:"callbackUrl,omitempty" nullable:"true" maxLength:"2000" example:"https://example.com/hook" doc:"Tell this http or https URL when the job has ended. Absent for that of the job."`
}
