// Package doctor looks for what is wrong with the database: jobs whose ledger
// row and list disagree, leases that nobody owns, an old schema, and servers
// that are badly set up. It only reads.
package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// setup allows a transaction to read whole tables: the planner may choose its plans,
// and the server cancels statements that take too long.
var setup = `set local statement_timeout = '100s'; set local enable_seqscan = on; set local enable_bitmapscan = on;
set local enable_hashjoin = on; set local enable_mergejoin = on; set local enable_hashagg = on`

// Doctor examines one database.
type Doctor struct{ pool *postgres.Pool }

// New returns a doctor that uses one connection of the pool at a time.
func New(pool *postgres.Pool) *Doctor { return &Doctor{pool: pool} }

// checks run in this order, those of jobs first.
var checks = []struct {
	name  string
	check func(context.Context, pgx.Tx) (job.Check, error)
}{
	{"ledger_and_lists", checkLists},
	{"leases", checkLeases},
	{"silent_workers", checkSilentWorkers},
	{"unserved_types", checkUnservedTypes},
	{"schema_version", checkSchema},
	{"statistics", checkStatistics},
	{"oldest_snapshot", checkSnapshots},
	{"server_settings", checkSettings},
}

// Diagnose makes all checks, whatever they find. It reads every job. A check that
// the database user may not make, or that takes too long, is a warning; an error
// says that the database is not available.
func (d *Doctor) Diagnose(ctx context.Context) ([]job.Check, error) {
	made := make([]job.Check, 0, len(checks))
	for _, c := range checks {
		var check job.Check
		err := d.read(ctx, func(tx pgx.Tx) (err error) {
			check, err = c.check(ctx, tx)
			return err
		})
		if err != nil {
			if check = notMade(err); check.Summary == "" {
				return nil, postgres.Translate("diagnose", err)
			}
		}
		check.Name = c.name
		made = append(made, check)
	}
	return made, nil
}

// read runs f in a transaction that may take long and only reads. f must not run
// statements that are also run elsewhere: a connection keeps the plans that it
// made.
func (d *Doctor) read(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setup); err != nil {
			return err
		}
		return f(tx)
	})
}

// SQLSTATEs with which a server refuses a check.
const (
	classShutdown         = "57P" // of a server that starts or stops
	queryCanceled         = "57014"
	insufficientPrivilege = "42501"
	undefinedTable        = "42P01"
)

// notMade is the result of a check that the server refused. It is empty if the
// server is not available.
func notMade(err error) job.Check {
	var answer *pgconn.PgError
	var unconnected *pgconn.ConnectError
	if errors.As(err, &unconnected) || !errors.As(err, &answer) || strings.HasPrefix(answer.Code, classShutdown) {
		return job.Check{}
	}
	check := job.Check{
		Severity: job.Warning, Summary: "This check could not be made: " + answer.Message + ".",
		Remedy: "See the database's log.",
	}
	switch answer.Code {
	case queryCanceled:
		check.Summary = "This check took too long: " + answer.Message + "."
		check.Remedy = "Try again when the database is less busy."
	case insufficientPrivilege:
		check.Remedy = "Grant the role pg_monitor to the database user of the orchestrator, or run the check as a user with that privilege."
	case undefinedTable:
		check.Remedy = "Bring the schema up to date: orchestrator migrate up."
	}
	return check
}
