package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Job is a job as clients see it: without its payload, attempts, worker, lease
// and errors.
type Job struct {
	JobID      job.ID          `json:"jobId" format:"uuid"`
	JobType    string          `json:"jobType" example:"SEND_EMAIL"`
	Status     job.Status      `json:"status" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED"`
	CreatedAt  time.Time       `json:"createdAt"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	StartedAt  *time.Time      `json:"startedAt,omitempty" doc:"When the latest attempt began."`
	FinishedAt *time.Time      `json:"finishedAt,omitempty"`
	Progress   json.RawMessage `json:"progress,omitempty" doc:"What the handler last reported: any JSON value."`
	Result     json.RawMessage `json:"result,omitempty" doc:"What the handler returned: any JSON value."`
}

// Ended reports whether the status is final.
func (j Job) Ended() bool {
	return j.Status == job.StatusCompleted || j.Status == job.StatusFailed || j.Status == job.StatusCanceled
}

// JobOf returns the public view of a job.
func JobOf(v job.View) Job {
	return Job{
		JobID: v.ID, JobType: v.Type, Status: v.State.Status(), CreatedAt: v.CreatedAt.UTC(), UpdatedAt: v.UpdatedAt.UTC(),
		StartedAt: utc(v.StartedAt), FinishedAt: utc(v.FinishedAt), Progress: v.Progress, Result: v.Result,
	}
}

// JobList is a page of jobs.
type JobList struct {
	Jobs       []Job  `json:"jobs" nullable:"false" doc:"Newest first. A page can be short, or empty, while more pages follow."`
	NextCursor string `json:"nextCursor,omitempty" doc:"Send it as cursor to get the next page. Absent on the last page."`
}

// DeadLetter is a dead-lettered job as operators see it.
type DeadLetter struct {
	JobID     job.ID    `json:"jobId" format:"uuid"`
	JobType   string    `json:"jobType"`
	Tenant    string    `json:"tenant"`
	DeadAt    time.Time `json:"deadAt"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"lastError"`
}

// DeadLetterOf returns a dead letter.
func DeadLetterOf(d job.DeadLetter) DeadLetter {
	return DeadLetter{
		JobID: d.ID, JobType: d.Type, Tenant: d.Tenant, DeadAt: d.DeadAt.UTC(), Attempts: d.Attempts, LastError: d.LastError,
	}
}

// DeadLetterList is a page of dead letters.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"deadLetters" nullable:"false" doc:"Newest first."`
	NextCursor  string       `json:"nextCursor,omitempty" doc:"Send it as cursor to get the next page. Absent on the last page."`
}

// Requeued is the answer to a request to requeue many dead letters.
type Requeued struct {
	Count int `json:"count" doc:"How many jobs were requeued."`
}

// Edit is the body of PATCH /jobs and PATCH /jobs/{id}: a JSON Merge Patch. A member that is
// absent stays as it is. The server reads it with the package submission.
type Edit struct {
	Priority *int     `json:"priority,omitempty" nullable:"true" minimum:"-32767" maximum:"32767" doc:"Higher is more urgent. null is 0."`
	RunAt    *string  `json:"runAt,omitempty" example:"2030-01-31T12:00:00Z" doc:"The new due time: a time (RFC 3339), or \"now\". Excludes delay."`
	Delay    *string  `json:"delay,omitempty" example:"30s" doc:"The new due time, counted from now: a Go duration such as 90s or 1h30m, at most ten years (87600h). Excludes runAt."`
	Tags     []string `json:"tags,omitempty" nullable:"true" maxItems:"20" doc:"Replace the job's tags. null and [] remove them."`
}

// Edited is the answer to a request to change many jobs.
type Edited struct {
	Count      int    `json:"count" doc:"How many jobs were changed, or would be. It can be zero while more follow."`
	NextCursor string `json:"nextCursor,omitempty" doc:"Send it as cursor to change the next jobs. Absent when there are no more."`
}

// listOf converts a list. JSON shows an empty one as [], not as null.
func listOf[From, To any](from []From, convert func(From) To) []To {
	to := make([]To, len(from))
	for i := range from {
		to[i] = convert(from[i])
	}
	return to
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
