package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// JobTree is a job with those that it has submitted, and so on.
type JobTree struct {
	Jobs      []TreeJob `json:"jobs" nullable:"false" doc:"Generation by generation, each in the order of creation. The first job is the ancestor of all others."`
	Truncated bool      `json:"truncated" doc:"Whether there are more jobs than are shown."`
}

// TreeJob is a job of a tree.
type TreeJob struct {
	JobID      job.ID     `json:"jobId" format:"uuid"`
	ParentID   *job.ID    `json:"parentId,omitempty" format:"uuid" doc:"The job that submitted it. Absent if a client did."`
	Depth      int        `json:"depth" doc:"How many generations it is below the first job."`
	JobType    string     `json:"jobType"`
	Status     job.Status `json:"status" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED"`
	State      job.State  `json:"state" enum:"created,queued,running,retry,succeeded,dead,canceled" doc:"The exact state behind the status."`
	CreatedAt  time.Time  `json:"createdAt"`
	StartedAt  *time.Time `json:"startedAt,omitempty" doc:"When the latest attempt started."`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
}

// JobTreeOf returns the tree for people.
func JobTreeOf(tree job.Tree) JobTree {
	shown := JobTree{Jobs: make([]TreeJob, len(tree.Jobs)), Truncated: tree.Truncated}
	for i, one := range tree.Jobs {
		shown.Jobs[i] = TreeJob{
			JobID: one.ID, ParentID: parentOf(one.Parent), Depth: one.Depth, JobType: one.Type, Status: one.State.Status(), State: one.State,
			CreatedAt: one.CreatedAt.UTC(), StartedAt: utc(one.StartedAt), FinishedAt: utc(one.FinishedAt),
		}
	}
	return shown
}

// parentOf is nil for a job that no other job has submitted.
func parentOf(id job.ID) *job.ID {
	if id == (job.ID{}) {
		return nil
	}
	return &id
}
