package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxExamples limits the details of a check.
const maxExamples = 10

// count is a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// add adds a detail, which makes the check at least as bad as the severity.
func add(check *job.Check, severity job.Severity, format string, args ...any) {
	check.Severity = worse(check.Severity, severity)
	check.Details = append(check.Details, fmt.Sprintf(format, args...))
}

// worse returns the worse of two severities.
func worse(a, b job.Severity) job.Severity {
	rank := []job.Severity{job.Fine, job.Warning, job.Problem}
	return rank[max(slices.Index(rank, a), slices.Index(rank, b))]
}

// rounded drops digits that nobody needs.
func rounded(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second / 10)
	}
	return d.Round(time.Second)
}
