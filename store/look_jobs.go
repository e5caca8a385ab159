package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reapedWithin is how soon after its expiry a lease is taken over when all is
// well, generously: reapers look every five seconds at least.
const reapedWithin = time.Minute

func lookAtLists(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	found, err := audit(ctx, tx, examplesAtMost+1)
	if err != nil || len(found) == 0 {
		return job.Check{Severity: job.Fine, Summary: "Every job is in the one list that its state asks for, and that says what the ledger says."}, err
	}
	check := job.Check{
		Severity: job.Problem,
		Summary:  fmt.Sprintf("The ledger and the list of %s disagree.", some(int64(len(found)), "job")),
		Remedy: "Something else wrote to the database, or a backup was restored in part. Find out what it was; " +
			"then put the list right, which follows from the ledger.",
	}
	if len(found) > examplesAtMost {
		found = found[:examplesAtMost]
		check.Summary = fmt.Sprintf("The ledger and the list of more than %d jobs disagree.", examplesAtMost)
	}
	for _, d := range found {
		check.Details = append(check.Details, d.String())
	}
	return check, nil
}

// leaseFindings say what the words of doctor_leases.sql mean.
var leaseFindings = map[string]struct {
	severity job.Severity
	meaning  string
}{
	"wrong fence":   {job.Problem, "with another fence than its job"},
	"overdue":       {job.Problem, "expired more than a minute ago and not taken over"},
	"unknown owner": {job.Warning, "of a worker that is not known"},
	"stopped owner": {job.Warning, "of a worker that has signed off"},
}

func lookAtLeases(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		Finding  string
		Leases   int64
		Examples []string
	}
	found, err := read(ctx, tx, doctorLeasesSQL, pgx.RowToStructByName[row], interval(reapedWithin))
	check := job.Check{Severity: job.Fine, Summary: "Every lease has a live owner, or is taken over in time."}
	if err != nil || len(found) == 0 {
		return check, err
	}
	var total int64
	for _, row := range found {
		total += row.Leases
		finding := leaseFindings[row.Finding]
		check.Severity = worse(check.Severity, finding.severity)
		check.Details = append(check.Details, fmt.Sprintf("%s %s, such as of job %s", some(row.Leases, "lease"), finding.meaning, row.Examples[0]))
	}
	check.Summary = fmt.Sprintf("%s cannot be right.", some(total, "lease"))
	check.Remedy = "See that an orchestrator runs and reaches the database: it takes over what has expired. " +
		"What remains then was written by something else."
	return check, nil
}

func lookAtSilentWorkers(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		WorkerID string
		Silent   time.Duration
		Leases   int64
	}
	found, err := read(ctx, tx, doctorSilentSQL, pgx.RowToStructByName[row])
	if err != nil || len(found) == 0 {
		return job.Check{Severity: job.Fine, Summary: "No worker has fallen silent over its jobs."}, err
	}
	check := job.Check{
		Severity: job.Warning,
		Remedy:   "Look after the workers, or after their connection to the database. Their jobs are taken over by any orchestrator that runs.",
	}
	if found[0].Silent > reapedWithin {
		check.Severity = job.Problem
	}
	var leases int64
	for i, row := range found {
		leases += row.Leases
		if i < examplesAtMost {
			check.Details = append(check.Details, fmt.Sprintf("%s: silent for %s, %s", row.WorkerID, rounded(row.Silent), some(row.Leases, "job")))
		}
	}
	check.Summary = fmt.Sprintf("%s fell silent over %s.", some(int64(len(found)), "worker"), some(leases, "job"))
	return check, nil
}

func lookAtUnservedTypes(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		JobType string
		Jobs    int64
		Oldest  time.Duration
	}
	found, err := read(ctx, tx, doctorUnservedSQL, pgx.RowToStructByName[row])
	if err != nil || len(found) == 0 {
		return job.Check{Severity: job.Fine, Summary: "A live worker serves every type that has jobs waiting."}, err
	}
	check := job.Check{
		Severity: job.Warning,
		Summary: fmt.Sprintf("Jobs of %s wait that no live worker serves, the oldest for %s.",
			some(int64(len(found)), "type"), rounded(found[0].Oldest)),
		Remedy: "Start an orchestrator with a handler of the type, or cancel the jobs.",
	}
	if found[0].Oldest > time.Hour {
		check.Severity = job.Problem
	}
	for _, row := range found[:min(len(found), examplesAtMost)] {
		number := some(row.Jobs, "job")
		if row.Jobs == 1000 {
			number = "1000 jobs or more"
		}
		check.Details = append(check.Details, fmt.Sprintf("%s: %s, the oldest for %s", row.JobType, number, rounded(row.Oldest)))
	}
	return check, nil
}

// rounded leaves out what nobody reads.
func rounded(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second / 10)
	}
	return d.Round(time.Second)
}
