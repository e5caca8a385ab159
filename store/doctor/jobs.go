package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reapedWithin is a generous limit for how long an expired lease waits for a
// reaper. Reapers run at least every five seconds.
const reapedWithin = time.Minute

// disagreement is a job whose ledger row and list row do not match.
type disagreement struct {
	ID    job.ID `db:"job_id"`
	State string // "absent" if the ledger has no such job
	List  string // "none" if no list has it
	// Differs names the columns whose values differ between the list and the
	// ledger, separated by commas.
	Differs string
}

func judgeLists(found []disagreement) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		differs := ""
		if row.Differs != "" {
			differs = " with another " + row.Differs
		}
		add(&check, job.Problem, "job %s: state %s, list %s%s", row.ID, row.State, row.List, differs)
	}
	jobs := count(int64(len(found)), "job")
	if len(found) > maxExamples {
		jobs = fmt.Sprintf("more than %d jobs", maxExamples)
	}
	check.Summary = fmt.Sprintf("The ledger and the list of %s disagree.", jobs)
	return check
}

type leasesRow struct {
	Finding string
	Problem bool
	Leases  int64
	Example job.ID
}

func judgeLeases(found []leasesRow) job.Check {
	check := job.Check{Severity: job.Fine}
	var total int64
	for _, row := range found {
		total += row.Leases
		add(&check, problemIf(row.Problem), "%s %s, such as that of job %s", count(row.Leases, "lease"), row.Finding, row.Example)
	}
	check.Summary = fmt.Sprintf("Something is wrong with %s.", count(total, "lease"))
	return check
}

type silentRow struct {
	WorkerID string
	Silent   time.Duration
	Leases   int64
}

func judgeSilentWorkers(found []silentRow) job.Check {
	check := job.Check{Severity: job.Fine}
	var leases int64
	for _, row := range found {
		leases += row.Leases
		add(&check, problemIf(row.Silent > reapedWithin), "%s: silent for %s, %s", row.WorkerID, rounded(row.Silent), count(row.Leases, "job"))
	}
	check.Summary = fmt.Sprintf("%s stopped sending heartbeats while holding %s.", count(int64(len(found)), "worker"), count(leases, "job"))
	return check
}

type rolesRow struct {
	Role job.Role
	// Since is when a process had the role last; nil if none is known.
	Since *time.Duration
}

// missed is what does not happen while no process has a role.
var missed = map[job.Role]string{
	job.RoleAPI:    "nobody serves the API",
	job.RoleWorker: "no job runs",
	job.RoleMaintenance: "jobs that become due are not queued, those of lost workers are not taken over, and schedules, limits, webhooks, " +
		"workflows and retention stand still",
}

func judgeRoles(found []rolesRow) job.Check {
	check := job.Check{Severity: job.Fine}
	var roles job.Roles
	for _, row := range found {
		roles = append(roles, row.Role)
		since := "as far as is known"
		if row.Since != nil {
			since = "for " + rounded(*row.Since).String()
		}
		add(&check, problemIf(row.Role != job.RoleAPI && (row.Since == nil || *row.Since > reapedWithin)), "%s: no live process %s, so %s", row.Role, since, missed[row.Role])
	}
	check.Summary = fmt.Sprintf("No live process has the role %s.", strings.Join(roles.Names(), " or "))
	return check
}

type unservedRow struct {
	JobType string
	Jobs    int64 // 1000 or more if not all are counted
	Oldest  time.Duration
}

func judgeUnservedTypes(found []unservedRow) job.Check {
	check := job.Check{Severity: job.Fine}
	var oldest time.Duration
	for _, row := range found {
		oldest = max(oldest, row.Oldest)
		jobs := count(row.Jobs, "job")
		if row.Jobs >= 1000 {
			jobs = "1000 jobs or more"
		}
		add(&check, problemIf(row.Oldest > time.Hour), "%s: %s, the oldest for %s", row.JobType, jobs, rounded(row.Oldest))
	}
	check.Summary = fmt.Sprintf("Jobs of %s are waiting that no live worker serves, the oldest for %s.",
		count(int64(len(found)), "type"), rounded(oldest))
	return check
}

// problemIf is a severity: a problem, or a warning.
func problemIf(bad bool) job.Severity {
	if bad {
		return job.Problem
	}
	return job.Warning
}
