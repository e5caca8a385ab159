package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Submission is the body of POST /jobs. A member that is absent or null takes its
// default. The server reads it with the package submission, which has the same limits.
type Submission struct {
	JobType        string          `json:"jobType" minLength:"1" maxLength:"200" example:"SEND_EMAIL" doc:"The kind of work. A handler must have declared it."`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"Any JSON value. It is stored exactly as you send it; null if absent."`
	IdempotencyKey *string         `json:"idempotencyKey,omitempty" nullable:"true" minLength:"1" maxLength:"255" doc:"Names this request. If you send it again, the answer names the job that the first one made. Same as the Idempotency-Key header."`
	Priority       *int            `json:"priority,omitempty" nullable:"true" minimum:"-32767" maximum:"32767" doc:"Higher is more urgent. The default is 0."`
	RunAt          *time.Time      `json:"runAt,omitempty" nullable:"true" doc:"Do not start before this time (RFC 3339). Excludes delay."`
	Delay          *string         `json:"delay,omitempty" nullable:"true" example:"30s" doc:"Do not start before this much time has passed: a Go duration such as 90s or 1h30m, at most ten years (87600h). Excludes runAt."`
	MaxAttempts    *int            `json:"maxAttempts,omitempty" nullable:"true" minimum:"1" maximum:"1000" doc:"How many attempts the job may take. The default is the job type's."`
	Timeout        *string         `json:"timeout,omitempty" nullable:"true" example:"30s" doc:"Time limit of each attempt: a Go duration from 1ms to 24h. The default is the job type's."`
	Tenant         *string         `json:"tenant,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"The tenant that owns the job. Idempotency keys are unique within a tenant. The default is \"default\"."`
	Tags           []string        `json:"tags,omitempty" nullable:"true" maxItems:"20" doc:"Words of up to 100 characters, to find the job by."`
	Hold           *bool           `json:"hold,omitempty" nullable:"true" doc:"Keep the job until you release it."`

	ConcurrencyKey   *string         `json:"concurrencyKey,omitempty" nullable:"true" minLength:"1" maxLength:"200" example:"customer:42" doc:"What the job uses. Jobs of a tenant with the same key share its limit, whatever their types. The part before the first colon, or the whole key if it has none, is the key's class, which can have a limit. The default is the job type's."`
	ConcurrencyLimit *int            `json:"concurrencyLimit,omitempty" nullable:"true" minimum:"1" maximum:"100000" doc:"How many jobs of the key may run when this one starts, itself included. Needs a key. The default is the job type's, then that of the key's class."`
	OnConflict       *job.OnConflict `json:"onConflict,omitempty" nullable:"true" enum:"queue,cancel_newcomer,cancel_oldest" doc:"What happens if so many run. Needs a key. The default is the job type's, then that of the key's class, then queue."`
	FairnessKey      *string         `json:"fairnessKey,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Who takes a turn. Waiting jobs of the same type and priority run in turns of their keys, however many jobs each has. The default is the job type's."`
	ExpiresAt        *time.Time      `json:"expiresAt,omitempty" nullable:"true" doc:"Cancel the job if it has not started by this time (RFC 3339). It must be in the future and after the job is due. Excludes ttl."`
	TTL              *string         `json:"ttl,omitempty" nullable:"true" example:"1h" doc:"Cancel the job if it has not started when this much time has passed: a Go duration from 1ms to ten years (87600h), longer than delay. Excludes expiresAt."`
	UniqueFor        *string         `json:"uniqueFor,omitempty" nullable:"true" example:"1h" doc:"Make no other job like this one for so long: a Go duration from 1ms to ten years (87600h). Alike are jobs of the same tenant and type whose uniqueBy members are equal. Excludes uniqueWhile."`
	UniqueWhile      *string         `json:"uniqueWhile,omitempty" nullable:"true" enum:"open" doc:"Make no other job like this one while it waits or runs. Excludes uniqueFor."`
	UniqueBy         []string        `json:"uniqueBy,omitempty" nullable:"true" minItems:"1" maxItems:"10" doc:"JSON Pointers (RFC 6901) to what must be equal in the payloads of jobs that are alike. An absent member differs from null. The default is the whole payload. Needs uniqueFor or uniqueWhile."`

	CallbackURL *string `json:"callbackUrl,omitempty" nullable:"true" maxLength:"2000" example:"https://example.com/hook" doc:"Tell this http or https URL when the job has ended: succeeded, dead or canceled. Each end is a POST, signed as Standard Webhooks says and retried as a job of its own. The default is the job type's."`
}

// Accepted is the answer to a submission. It is the same whether the submission made
// the job or found it by its idempotency key.
type Accepted struct {
	JobID     job.ID     `json:"jobId" format:"uuid"`
	JobType   string     `json:"jobType"`
	Status    job.Status `json:"status" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	Duplicate bool       `json:"duplicate,omitempty" doc:"True if no job was made, because the submission asked to be unique: this is the job that was there."`
}

// AcceptedOf returns the answer for a receipt.
func AcceptedOf(r job.Receipt) Accepted {
	return Accepted{
		JobID: r.ID, JobType: r.Type, Status: r.State.Status(), CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		Duplicate: r.Duplicate,
	}
}

// BatchAccepted is the answer to an atomic batch.
type BatchAccepted struct {
	Accepted int        `json:"accepted" doc:"How many jobs the batch has, duplicates included."`
	Jobs     []Accepted `json:"jobs" nullable:"false" doc:"In the order you sent them."`
}

// BatchResult is the answer to one submission of a batch: a job, or the problem
// that the submission would have got on its own.
type BatchResult struct {
	Index   int       `json:"index" doc:"The position of the submission in the batch, from 0."`
	Job     *Accepted `json:"job,omitempty"`
	Problem *Problem  `json:"problem,omitempty"`
}

// BatchResults is the answer to an array in which each job stands alone.
type BatchResults struct {
	Accepted int           `json:"accepted"`
	Refused  int           `json:"refused"`
	Results  []BatchResult `json:"results" nullable:"false" doc:"In the order you sent them."`
}

// BatchEnd is the last line of an answer that is sent line by line.
type BatchEnd struct {
	Done     bool     `json:"done" doc:"Whether the whole body was read and answered."`
	Accepted int      `json:"accepted"`
	Refused  int      `json:"refused"`
	Problem  *Problem `json:"problem,omitempty" doc:"Why the server stopped reading. Nothing after the last result was looked at."`
}
