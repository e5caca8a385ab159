// Package doctor looks for what is wrong with the database: jobs whose ledger
// row and list disagree, leases that nobody owns, an old schema, and servers
// that are badly set up. It only reads.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// undone takes back what setup did, to see the settings that sessions have.
const undone = `set local statement_timeout to default; set local enable_seqscan to default; set local enable_bitmapscan to default;
set local enable_hashjoin to default; set local enable_mergejoin to default; set local enable_hashagg to default`

// Doctor examines one database.
type Doctor struct {
	pool    *postgres.Pool
	cell    job.Cell
	replica *postgres.Replica // nil if there is none
}

// New returns a doctor that uses one connection of the pool at a time. The cell is the one
// that the configuration says the database is. The replica may be nil.
func New(pool *postgres.Pool, cell job.Cell, replica *postgres.Replica) *Doctor {
	return &Doctor{pool: pool, cell: cell, replica: replica}
}

// checks are made in this order, those of jobs first.
var checks = []struct {
	name string
	make func(context.Context, *Doctor, pgx.Tx) (job.Check, error)
	// fine is the summary if nothing is wrong, and remedy is what to do otherwise. A
	// check that leaves them out has its own.
	fine, remedy string
}{
	{
		"ledger_and_lists", judged("audit", pgx.RowToStructByName[disagreement], judgeLists, maxExamples+1),
		"Every job is in the one list for its state, and that list agrees with the ledger.",
		"Another program wrote to the database, or a backup was only partly restored. Find out which; " +
			"then correct the list from the ledger.",
	},
	{
		"leases", judged("doctor_leases", pgx.RowToStructByName[leasesRow], judgeLeases, postgres.Interval(reapedWithin)),
		"Every lease has a live owner or is taken over in time.",
		"Make sure that an orchestrator with the role maintenance runs and reaches the database: it takes over expired leases. " +
			"Another program wrote those that remain.",
	},
	{
		"silent_workers", judged("doctor_silent", pgx.RowToStructByName[silentRow], judgeSilentWorkers),
		"No worker with jobs has stopped sending heartbeats.",
		"Check the workers and their connection to the database. An orchestrator with the role maintenance takes over their jobs.",
	},
	{
		"roles", judged("doctor_roles", pgx.RowToStructByName[rolesRow], judgeRoles, job.AllRoles().Names()),
		"Live processes have every role.",
		"Start an orchestrator with the role: `orchestrator serve --role ROLE`, or without `--role` for all of them.",
	},
	{
		"unserved_types", judged("doctor_unserved", pgx.RowToStructByName[unservedRow], judgeUnservedTypes),
		"A live worker serves every type that has jobs waiting.",
		"Start an orchestrator with a handler for the type, or cancel the jobs.",
	},
	{
		"slots", judged("doctor_slots", pgx.RowToStructByName[heldRow], judgeSlots, maxExamples+1),
		"Every used slot is held by a job.",
		"Orchestrators count slots anew when they start, and every hour. If the count is wrong again after that, another program " +
			"or an earlier version of Holdfast writes to the database.",
	},
	{
		"admission", judged("doctor_admission", pgx.RowToStructByName[admissionRow], judgeAdmission, postgres.Interval(admittedWithin), maxExamples+1),
		"No job waits at a limit that has room.",
		"Make sure that an orchestrator with the role maintenance runs, and look for errors of `admit` in its log. Restarting one makes it look at every lane.",
	},
	{
		"pauses", judged("doctor_pauses", pgx.RowToStructByName[pausesRow], judgePauses),
		"No pause has lasted for long, and every limit lets jobs start.",
		"Ask whoever set it, or end it: `orchestrator resume`, `orchestrator limits set`.",
	},
	{
		"retention", judged("doctor_retention", pgx.RowToStructByName[retentionRow], judgeRetention, postgres.Interval(sweptWithin), postgres.Interval(overdueWithin)),
		"No job has outlived its time, and no erasure is stuck.",
		"Make sure that an orchestrator with the role maintenance and your retention settings runs, and look for errors in its log.",
	},
	{
		"operations", judged("doctor_operations", pgx.RowToStructByName[operationsRow], judgeOperations, postgres.Interval(operatedWithin), maxExamples+1),
		"No operation is stuck.",
		"Make sure that an orchestrator with the role maintenance runs, and look for errors about operations in its log. `orchestrator operation stop` ends one for good.",
	},
	{
		"following", judged("doctor_following", pgx.RowToStructByName[followingRow], judgeFollowing, postgres.Interval(followedWithin)),
		"Everybody who waits for jobs was told of their ends.",
		"Make sure that an orchestrator with the role maintenance runs, and look for errors of `follow` in its log. To announce ends to callback URLs, " +
			"an orchestrator needs the built-in plugin; those that wait are announced within a minute after that.",
	},
	{
		"webhooks", judged("doctor_webhooks", pgx.RowToStructByName[webhooksRow], judgeWebhooks, job.DeliveryType, postgres.Interval(undeliveredWithin)),
		"No delivery of a webhook has failed for good within a day.",
		"See their errors: `orchestrator dead-letter groups --type " + job.DeliveryType + "`. When the receivers work, send them again: " +
			"`orchestrator operation start requeue --type " + job.DeliveryType + "`.",
	},
	{
		"workflows", judged("doctor_workflows", pgx.RowToStructByName[workflowsRow], judgeWorkflows, postgres.Interval(followedWithin), maxExamples+1),
		"Every workflow goes on when its jobs have ended.",
		"Make sure that an orchestrator with the role maintenance runs, and look for errors of `follow` in its log. It looks at every workflow when it starts, and every " +
			"hour: restart it to have it look now. An earlier version ends jobs without telling their workflow.",
	},
	{
		"schedules", judged("doctor_schedules", pgx.RowToStructByName[schedulesRow], judgeSchedules, postgres.Interval(firedWithin), maxExamples+1),
		"Every schedule makes its jobs when they are due.",
		"See the schedule: `orchestrator schedule get`. Correct its job, or make its handler available; `orchestrator schedule backfill` makes " +
			"up for runs that made none. If ticks are overdue, make sure that an orchestrator with the role maintenance runs, and look for errors about schedules in its log.",
	},
	{
		name: "schema_version", make: checkSchema,
		fine: fmt.Sprintf("The schema has version %d.", schemaVersion),
	},
	{
		"cell", checkCell,
		"",
		"Set database.cell to what the database is, in every orchestrator, and restart those that lack it. See docs/how-to/cells.md.",
	},
	{
		"statistics", judged("doctor_statistics", pgx.RowToStructByName[statisticsRow], judgeStatistics),
		"Autovacuum keeps up with every table.",
		"Turn autovacuum on, find what blocks it (see oldest_snapshot), or run VACUUM ANALYZE by hand.",
	},
	{name: "oldest_snapshot", make: judged("doctor_snapshots", pgx.RowToStructByName[snapshotRow], judgeSnapshots)},
	{
		name: "server_settings", make: judged("doctor_settings", pgx.RowToStructByName[settingsRow], judgeSettings),
		remedy: "Change the server's settings (see docs/how-to/postgresql.md). A change of max_connections needs a restart; " +
			"fewer orchestrators or smaller pools help too.",
	},
	{
		"session_settings", checkSession,
		"Sessions have the settings that statements need.",
		"If a pooler drops them, set database.direct_url and run `orchestrator migrate up`, which gives them to the database user. Then let " +
			"the pooler open new connections, as RECONNECT does for PgBouncer.",
	},
	{
		name: "replication", make: judged("doctor_replication", pgx.RowToStructByName[standbyRow], judgeStandbys),
		remedy: "See docs/how-to/postgresql.md#replication-and-failover. Without it, a failover loses accepted jobs, or nothing can be accepted.",
	},
	{
		"primary", checkPrimary,
		"New connections reach the server that is in use, and no other server takes writes.",
		"Stop the old primary, or cut off its clients: what it accepts is lost. Orchestrators that still use it reconnect when it is gone.",
	},
	{
		name: "replica", make: checkReplica,
		remedy: "Nothing is lost, but the primary has more to do. See docs/how-to/high-availability.md#a-read-replica.",
	},
}

// judged makes a check of the rows that a statement returns.
func judged[T any](statement string, row pgx.RowToFunc[T], judge func([]T) job.Check, args ...any) func(context.Context, *Doctor, pgx.Tx) (job.Check, error) {
	return func(ctx context.Context, _ *Doctor, tx pgx.Tx) (job.Check, error) {
		rows, err := postgres.Rows(ctx, tx, statement, row, args...)
		if err != nil {
			return job.Check{}, err
		}
		return judge(rows), nil
	}
}

// Diagnose makes all checks, whatever they find. It reads every job. A check that
// the database user may not make, or that takes too long, is a warning; an error
// says that the database is not available. A ledger that is closed has a check that says
// so first, and lacks those that mean nothing then.
func (d *Doctor) Diagnose(ctx context.Context) ([]job.Check, error) {
	made := make([]job.Check, 0, len(checks))
	closed, err := d.closure(ctx)
	if err != nil {
		check := notMade(err)
		if check.Summary == "" {
			return nil, postgres.Translate("diagnose", err)
		}
		check.Name = ledgerClosed
		made = append(made, check)
	}
	if closed != nil {
		made = append(made, closed.check())
	}
	for _, c := range checks {
		if closed.skips(c.name) {
			continue
		}
		var check job.Check
		err := d.read(ctx, func(tx pgx.Tx) (err error) {
			check, err = c.make(ctx, d, tx)
			return err
		})
		if err != nil {
			if check = notMade(err); check.Summary == "" {
				return nil, postgres.Translate("diagnose", err)
			}
		}
		check.Name = c.name
		check.Details = check.Details[:min(len(check.Details), maxExamples)]
		if check.Severity == job.Fine {
			check.Summary = cmp.Or(c.fine, check.Summary)
		} else {
			check.Remedy = cmp.Or(check.Remedy, c.remedy)
		}
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
