package doctor

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// followedWithin is a generous limit for how long an end waits for the follower, which looks
// within a second.
const followedWithin = time.Minute

type followingRow struct {
	Ends   int64
	Waited time.Duration
	Reason string // empty for the follower's inbox
	// GivenUp says that they are not tried again.
	GivenUp bool
}

func judgeFollowing(found []followingRow) job.Check {
	check := job.Check{Severity: job.Fine, Summary: "Ends of jobs were not passed on."}
	for _, row := range found {
		if row.Reason == "" {
			add(&check, job.Problem, "the follower has not looked at %s, the oldest for %s", count(row.Ends, "end"), rounded(row.Waited))
			continue
		}
		if row.GivenUp {
			add(&check, job.Warning, "%s will never be announced, the oldest for %s: %s", count(row.Ends, "end"), rounded(row.Waited), row.Reason)
			continue
		}
		add(&check, job.Problem, "%s could not be announced, the oldest for %s: %s", count(row.Ends, "end"), rounded(row.Waited), row.Reason)
	}
	return check
}
