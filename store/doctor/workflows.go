package doctor

import (
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

type workflowsRow struct {
	WorkflowID job.ID
	JobID      *job.ID // nil for a workflow that is not finished although its jobs have ended
	Waited     time.Duration
}

func judgeWorkflows(found []workflowsRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		if row.JobID == nil {
			add(&check, job.Problem, "workflow %s: all its jobs ended %s ago, but it has not finished", row.WorkflowID, rounded(row.Waited))
			continue
		}
		add(&check, job.Problem, "workflow %s: job %s should have become due %s ago", row.WorkflowID, *row.JobID, rounded(row.Waited))
	}
	places := count(int64(len(found)), "place")
	if len(found) > maxExamples {
		places = fmt.Sprintf("more than %d places", maxExamples)
	}
	check.Summary = fmt.Sprintf("Workflows do not go on in %s.", places)
	return check
}
