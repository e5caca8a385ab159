package doctor

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// undeliveredWithin is how far back to look for deliveries that have died. Those before are known,
// or nobody wants them.
const undeliveredWithin = 24 * time.Hour

type webhooksRow struct {
	Deliveries int64
	Ago        time.Duration
}

func judgeWebhooks(found []webhooksRow) job.Check {
	check := job.Check{Severity: job.Fine, Summary: "Receivers of webhooks were not told."}
	for _, row := range found {
		add(&check, job.Warning, "%s failed for good within a day, the latest %s ago", count(row.Deliveries, "webhook"), rounded(row.Ago))
	}
	return check
}
