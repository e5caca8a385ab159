package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// checkReplica looks whether the replica can answer reads that may be a little old.
func checkReplica(ctx context.Context, d *Doctor, _ pgx.Tx) (job.Check, error) {
	if d.replica == nil {
		return job.Check{Severity: job.Fine, Summary: "database.replica_url is not set: lists and figures come from the primary."}, nil
	}
	status, err := d.replica.Examine(ctx)
	if err != nil {
		return job.Check{}, err
	}
	return judgeReplica(status), nil
}

func judgeReplica(status postgres.ReplicaStatus) job.Check {
	check := job.Check{Severity: job.Fine}
	switch {
	case status.Why == nil:
		check.Summary = fmt.Sprintf("The replica answers lists and figures; it is at most %s behind.", rounded(*status.Lag))
		return check
	case errors.Is(status.Why, postgres.ErrForeignReplica):
		check.Remedy = "Correct database.replica_url: it must lead to a standby of the server of database.url, and to the same database there. Orchestrators refuse to start with it."
	}
	add(&check, job.Warning, "%s", status.Why)
	check.Summary = "Lists and figures come from the primary, since the replica cannot answer them."
	return check
}
