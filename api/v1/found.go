package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// FoundJob is a job in a list for operators.
type FoundJob struct {
	Job
	State  job.State `json:"state" enum:"created,queued,running,retry,succeeded,dead,canceled" doc:"The exact state behind the status."`
	Tenant string    `json:"tenant"`

	Tags            []string   `json:"tags" nullable:"false"`
	Priority        int16      `json:"priority"`
	RunAt           *time.Time `json:"runAt,omitempty" doc:"When the job is, or was, due. Absent while it is held."`
	Held            bool       `json:"held,omitempty" doc:"Whether it waits to be released."`
	AttemptsCharged int        `json:"attemptsCharged" doc:"How many attempts count against maxAttempts, including the running one."`
	MaxAttempts     int        `json:"maxAttempts"`
	Worker          string     `json:"worker,omitempty" doc:"The worker that ran the latest attempt."`
	ErrorCode       string     `json:"errorCode,omitempty" doc:"The error code of the last attempt that has ended."`
	LastError       string     `json:"lastError,omitempty" doc:"The first line of the last error, at most 200 characters of it."`
}

// FoundJobOf returns a job as operators see it in a list.
func FoundJobOf(f job.Found) FoundJob {
	found := FoundJob{
		Job: JobOf(f.View), State: f.State, Tenant: f.Tenant, Tags: append([]string{}, f.Tags...), Priority: f.Priority,
		Held:            f.State == job.Created && f.RunAt.IsZero(),
		AttemptsCharged: f.Charged, MaxAttempts: f.MaxAttempts, Worker: f.Worker, ErrorCode: f.Code, LastError: f.LastError,
	}
	if !f.RunAt.IsZero() {
		found.RunAt = utc(&f.RunAt)
	}
	return found
}

// FoundJobs is a page of jobs for operators.
type FoundJobs struct {
	Jobs         []FoundJob `json:"jobs" nullable:"false" doc:"Newest first. A page can be short, or empty, while more pages follow."`
	NextCursor   string     `json:"nextCursor,omitempty" doc:"Send it as cursor to get the next page: older jobs. Absent on the last page."`
	PageCursor   string     `json:"pageCursor,omitempty" doc:"Send it as cursor to get this page again, without the jobs that are newer. Absent if there are no jobs."`
	SearchedBack *time.Time `json:"searchedBack,omitempty" doc:"The page has all jobs that match and were created since then. Absent on the last page."`
}

// FoundJobsOf returns a page.
func FoundJobsOf(page job.FoundPage, next string) FoundJobs {
	found := FoundJobs{Jobs: listOf(page.Jobs, FoundJobOf), NextCursor: next}
	if page.Next != (job.ID{}) {
		back := page.Next.Time().UTC()
		found.SearchedBack = &back
	}
	return found
}

// JobCount is how many jobs there are.
type JobCount struct {
	Count int  `json:"count" doc:"Exact up to 10,000."`
	More  bool `json:"more" doc:"Whether there are more, or may be: only the newest 10,000 jobs are looked at if no list of jobs is shorter, or 100,000 dead ones if only their type, tenant, error code and fingerprint are asked for."`
}

// Lookup is what has an id or an idempotency key.
type Lookup struct {
	Jobs     []FoundJob `json:"jobs" nullable:"false" doc:"The job with this id, and those with this idempotency key: at most one for each tenant. Newest first."`
	More     bool       `json:"more,omitempty" doc:"Whether there may be more jobs. Give a tenant."`
	Workflow *Workflow  `json:"workflow,omitempty" doc:"The workflow with this id."`
}
