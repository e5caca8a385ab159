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
	Progress   json.RawMessage `json:"progress,omitempty" payloads:"withhold" doc:"What the handler last reported: any JSON value."`
	Result     json.RawMessage `json:"result,omitempty" payloads:"withhold" doc:"What the handler returned: any JSON value."`
	ErasedAt   *time.Time      `json:"erasedAt,omitempty" doc:"When what the job contained was erased, on request or because its time was over. Only the record is left that there was such a job."`

	PayloadsWithheld bool `json:"payloadsWithheld,omitempty" payloads:"mark" doc:"Whether payload, progress, checkpoint and result, and all but the origin of callbackUrl, are left out, because the credentials lack the scope payloads."`
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
		ErasedAt: utc(v.ErasedAt),
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
	Erased    bool      `json:"erased,omitempty" doc:"Whether what the job contained was erased. Then it cannot be requeued."`
	// ErrorCode and Fingerprint are those of the last attempt.
	ErrorCode   string `json:"errorCode,omitempty" doc:"The error code that the handler gave the last attempt's error."`
	Fingerprint string `json:"fingerprint,omitempty" doc:"The same for errors that differ in details only. Absent for a few seconds for a job that an earlier version of the program dead-lettered."`
}

// DeadLetterOf returns a dead letter.
func DeadLetterOf(d job.DeadLetter) DeadLetter {
	return DeadLetter{
		JobID: d.ID, JobType: d.Type, Tenant: d.Tenant, DeadAt: d.DeadAt.UTC(), Attempts: d.Attempts, LastError: d.LastError, Erased: d.Erased,
		ErrorCode: d.Code, Fingerprint: d.Fingerprint,
	}
}

// DeadLetterList is a page of dead letters.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"deadLetters" nullable:"false" doc:"Newest first."`
	NextCursor  string       `json:"nextCursor,omitempty" doc:"Send it as cursor to get the next page. Absent on the last page."`
}

// DeadLetterGroup is the dead letters of one job type whose last errors differ in details
// only.
type DeadLetterGroup struct {
	JobType     string    `json:"jobType"`
	ErrorCode   string    `json:"errorCode,omitempty" doc:"The error code that the handler gave."`
	Fingerprint string    `json:"fingerprint,omitempty" doc:"Of the error. Send it, and jobType, to list or requeue the group. Absent for jobs that an earlier version of the program dead-lettered and whose fingerprint is not filled in yet."`
	Message     string    `json:"message" doc:"The error without what differs: # for numbers, ids and the like, … for quoted text. At most 200 bytes."`
	Count       int       `json:"count" doc:"How many jobs there are, up to 10,000."`
	More        bool      `json:"more" doc:"Whether there are more jobs than count says."`
	FirstDeadAt time.Time `json:"firstDeadAt"`
	LastDeadAt  time.Time `json:"lastDeadAt"`
	Versions    []string  `json:"versions" nullable:"false" doc:"The versions of the plugin with which the latest 100 of the jobs failed."`
	SampleIDs   []job.ID  `json:"sampleIds" nullable:"false" doc:"The three jobs that died last."`
	Recent      []int64   `json:"recent,omitempty" nullable:"false" doc:"How many of the latest 1,000 of the jobs died in each of the last 24 hours, oldest first. Absent if none did."`
}

// DeadLetterGroups is all groups.
type DeadLetterGroups struct {
	Groups []DeadLetterGroup `json:"groups" nullable:"false" doc:"The one with the latest death first."`
	More   bool              `json:"more" doc:"Whether there are more than 1,000 groups, and only some of them are shown. Ask for one jobType."`
}

// DeadLetterGroupsOf returns groups.
func DeadLetterGroupsOf(groups []job.DeadLetterGroup, more bool) DeadLetterGroups {
	shown := DeadLetterGroups{Groups: make([]DeadLetterGroup, len(groups)), More: more}
	for i, g := range groups {
		shown.Groups[i] = DeadLetterGroup{
			JobType: g.Type, ErrorCode: g.Code, Fingerprint: g.Fingerprint, Message: g.Message, Count: g.Jobs, More: g.More,
			FirstDeadAt: g.FirstDeadAt.UTC(), LastDeadAt: g.LastDeadAt.UTC(), Versions: g.Versions, SampleIDs: g.Samples, Recent: g.Recent,
		}
	}
	return shown
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
