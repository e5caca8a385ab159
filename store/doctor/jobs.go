package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// reapedWithin is a generous limit for how long an expired lease waits for a
// reaper. Reapers run at least every five seconds.
const reapedWithin = time.Minute

func checkLists(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	found, err := audit(ctx, tx, maxExamples+1)
	if err != nil || len(found) == 0 {
		return job.Check{Severity: job.Fine, Summary: "Every job is in the one list for its state, and that list agrees with the ledger."}, err
	}
	check := job.Check{
		Severity: job.Problem,
		Summary:  fmt.Sprintf("The ledger and the list of %s disagree.", count(int64(len(found)), "job")),
		Remedy: "Another program wrote to the database, or a backup was only partly restored. Find out which; " +
			"then correct the list from the ledger.",
	}
	if len(found) > maxExamples {
		found = found[:maxExamples]
		check.Summary = fmt.Sprintf("The ledger and the list of more than %d jobs disagree.", maxExamples)
	}
	for _, d := range found {
		check.Details = append(check.Details, d.String())
	}
	return check, nil
}

// leaseFindings explains the findings of doctor_leases.sql.
var leaseFindings = map[string]struct {
	severity job.Severity
	meaning  string
}{
	"wrong fence":   {job.Problem, "with another fence than its job"},
	"overdue":       {job.Problem, "expired more than a minute ago and not taken over"},
	"unknown owner": {job.Warning, "of an unknown worker"},
	"stopped owner": {job.Warning, "of a worker that has signed off"},
}

func checkLeases(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		Finding  string
		Leases   int64
		Examples []string
	}
	found, err := postgres.Rows(ctx, tx, "doctor_leases", pgx.RowToStructByName[row], postgres.Interval(reapedWithin))
	check := job.Check{Severity: job.Fine, Summary: "Every lease has a live owner or is taken over in time."}
	if err != nil || len(found) == 0 {
		return check, err
	}
	var total int64
	for _, row := range found {
		total += row.Leases
		finding := leaseFindings[row.Finding]
		check.Severity = worse(check.Severity, finding.severity)
		check.Details = append(check.Details, fmt.Sprintf("%s %s, such as that of job %s", count(row.Leases, "lease"), finding.meaning, row.Examples[0]))
	}
	check.Summary = fmt.Sprintf("Something is wrong with %s.", count(total, "lease"))
	check.Remedy = "Make sure that an orchestrator runs and reaches the database: it takes over expired leases. " +
		"Another program wrote those that remain."
	return check, nil
}

func checkSilentWorkers(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		WorkerID string
		Silent   time.Duration
		Leases   int64
	}
	found, err := postgres.Rows(ctx, tx, "doctor_silent", pgx.RowToStructByName[row])
	if err != nil || len(found) == 0 {
		return job.Check{Severity: job.Fine, Summary: "No worker with jobs has stopped sending heartbeats."}, err
	}
	check := job.Check{
		Severity: job.Warning,
		Remedy:   "Check the workers and their connection to the database. Any running orchestrator takes over their jobs.",
	}
	if found[0].Silent > reapedWithin {
		check.Severity = job.Problem
	}
	var leases int64
	for i, row := range found {
		leases += row.Leases
		if i < maxExamples {
			check.Details = append(check.Details, fmt.Sprintf("%s: silent for %s, %s", row.WorkerID, rounded(row.Silent), count(row.Leases, "job")))
		}
	}
	check.Summary = fmt.Sprintf("%s stopped sending heartbeats while holding %s.", count(int64(len(found)), "worker"), count(leases, "job"))
	return check, nil
}

func checkUnservedTypes(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		JobType string
		Jobs    int64
		Oldest  time.Duration
	}
	found, err := postgres.Rows(ctx, tx, "doctor_unserved", pgx.RowToStructByName[row])
	if err != nil || len(found) == 0 {
		return job.Check{Severity: job.Fine, Summary: "A live worker serves every type that has jobs waiting."}, err
	}
	check := job.Check{
		Severity: job.Warning,
		Summary: fmt.Sprintf("Jobs of %s are waiting that no live worker serves, the oldest for %s.",
			count(int64(len(found)), "type"), rounded(found[0].Oldest)),
		Remedy: "Start an orchestrator with a handler for the type, or cancel the jobs.",
	}
	if found[0].Oldest > time.Hour {
		check.Severity = job.Problem
	}
	for _, row := range found[:min(len(found), maxExamples)] {
		number := count(row.Jobs, "job")
		if row.Jobs == 1000 {
			number = "1000 jobs or more"
		}
		check.Details = append(check.Details, fmt.Sprintf("%s: %s, the oldest for %s", row.JobType, number, rounded(row.Oldest)))
	}
	return check, nil
}
