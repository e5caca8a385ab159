package doctor

import (
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// firedWithin is a generous limit for how long a tick waits for the ticker, which looks
// within a second.
const firedWithin = time.Minute

type schedulesRow struct {
	Schedule string
	Overdue  time.Duration
	Failure  string
}

func judgeSchedules(found []schedulesRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		if row.Overdue > firedWithin {
			add(&check, job.Problem, "%s: its tick should have been fired %s ago", row.Schedule, rounded(row.Overdue))
			continue
		}
		add(&check, job.Warning, "%s: its last tick could make no job: %s", row.Schedule, row.Failure)
	}
	schedules := count(int64(len(found)), "schedule")
	if len(found) > maxExamples {
		schedules = fmt.Sprintf("more than %d schedules", maxExamples)
	}
	check.Summary = fmt.Sprintf("%s made no job when due.", upperFirst(schedules))
	return check
}

func upperFirst(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
