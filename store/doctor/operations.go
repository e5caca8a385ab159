package doctor

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// operatedWithin is a generous limit for how long an operation that is due waits for an
// orchestrator. They look every two seconds.
const operatedWithin = time.Minute

type operationsRow struct {
	Finding   string
	ID        string
	Action    string
	LastError string
	Lasted    time.Duration
}

func judgeOperations(found []operationsRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		if row.Finding == "failing" {
			add(&check, job.Problem, "operation %s (%s) does not get on: %s", row.ID, row.Action, row.LastError)
		} else {
			add(&check, job.Warning, "operation %s (%s): nobody has worked on it for %s", row.ID, row.Action, rounded(row.Lasted))
		}
	}
	check.Summary = "Operations do not get on."
	return check
}
