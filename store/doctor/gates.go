package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// admittedWithin is a generous limit for how long a job that nothing keeps back waits for
// the admitter, which looks within a second.
const admittedWithin = time.Minute

const (
	// forgotten is how long a pause lasts until somebody may have forgotten it.
	forgotten = 24 * time.Hour
	// unexplained is the same for a pause without a reason, and for a limit of 0, which
	// cannot have one.
	unexplained = time.Hour
)

type heldRow struct {
	Gate       job.Gate
	Used, Held int64
}

func judgeSlots(found []heldRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		lost := fmt.Sprintf("%s too few", count(row.Held-row.Used, "slot"))
		if row.Used > row.Held {
			lost = fmt.Sprintf("nobody holds %s", count(row.Used-row.Held, "slot"))
		}
		add(&check, job.Problem, "%s: %d counted, %d held: %s", row.Gate, row.Used, row.Held, lost)
	}
	gates := count(int64(len(found)), "gate")
	if len(found) > maxExamples {
		gates = fmt.Sprintf("more than %d gates", maxExamples)
	}
	check.Summary = fmt.Sprintf("The used slots of %s are counted wrong.", gates)
	return check
}

type admissionRow struct {
	Lane   job.Gate
	JobID  *job.ID // nil for a rate that nobody has looked at
	Waited time.Duration
}

func judgeAdmission(found []admissionRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		if row.JobID == nil {
			add(&check, job.Problem, "%s: its rate should have been looked at %s ago", row.Lane, rounded(row.Waited))
			continue
		}
		add(&check, job.Problem, "%s: nothing keeps back job %s, parked %s ago", row.Lane, *row.JobID, rounded(row.Waited))
	}
	lanes := count(int64(len(found)), "lane")
	if len(found) > maxExamples {
		lanes = fmt.Sprintf("more than %d lanes", maxExamples)
	}
	check.Summary = fmt.Sprintf("Jobs of %s wait although they may start.", lanes)
	return check
}

type pausesRow struct {
	What   string
	Pause  bool // or else a limit that is 0
	Lasted time.Duration
	By     string
	Reason string
	Ends   bool
}

func judgePauses(found []pausesRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		switch {
		case !row.Pause && row.Lasted > unexplained:
			add(&check, job.Warning, "limit of %s: 0 for %s%s, so nothing of it starts", row.What, rounded(row.Lasted), row.by())
		case row.Pause && row.Lasted > forgotten && !row.Ends:
			add(&check, job.Warning, "%s: paused for %s%s%s, without an end", row.What, rounded(row.Lasted), row.by(), row.why())
		case row.Pause && row.Lasted > unexplained && row.Reason == "":
			add(&check, job.Warning, "%s: paused for %s%s, without a reason", row.What, rounded(row.Lasted), row.by())
		}
	}
	check.Summary = fmt.Sprintf("Somebody may have forgotten %s.", count(int64(len(check.Details)), "pause or limit"))
	if len(check.Details) > 1 {
		check.Summary = fmt.Sprintf("Somebody may have forgotten %d pauses or limits.", len(check.Details))
	}
	return check
}

func (r pausesRow) by() string {
	if r.By == "" {
		return ""
	}
	return " by " + r.By
}

func (r pausesRow) why() string {
	if r.Reason == "" {
		return ""
	}
	return " (" + strings.TrimSpace(r.Reason) + ")"
}
