package doctor

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// sweptWithin is a generous limit for how long nobody works on a walk of the deleter or
	// on an erasure. Orchestrators look every few seconds.
	sweptWithin = 10 * time.Minute
	// overdueWithin is the same for jobs whose time is over. The deleter comes back to those
	// that ended late after an hour, or later in a large ledger.
	overdueWithin = 24 * time.Hour
)

type retentionRow struct {
	Finding string
	What    string
	Lasted  time.Duration
}

func judgeRetention(found []retentionRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		switch row.Finding {
		case "silent":
			add(&check, job.Warning, "nobody has deleted %s jobs for %s", row.What, rounded(row.Lasted))
		case "overdue":
			add(&check, job.Warning, "job %s, or one like it, should have been deleted or blanked %s ago", row.What, rounded(row.Lasted))
		default:
			add(&check, job.Problem, "erasure %s: nobody has worked on it for %s", row.What, rounded(row.Lasted))
		}
	}
	check.Summary = "Jobs that should be deleted or erased are still there."
	return check
}
