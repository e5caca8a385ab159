package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// examplesAtMost bounds the details of a check.
const examplesAtMost = 10

// diagnosisSettings hold while a diagnosis reads whole tables: the planner is
// free, and what takes longer is given up.
var diagnosisSettings = map[string]string{
	"statement_timeout": "100s",
	"enable_seqscan":    "on",
	"enable_bitmapscan": "on",
	"enable_hashjoin":   "on",
	"enable_mergejoin":  "on",
	"enable_hashagg":    "on",
}

// A look finds out about one thing and leaves the check's name to the caller.
type look func(context.Context, pgx.Tx) (job.Check, error)

// looks are made in this order, what concerns jobs first.
var looks = []struct {
	name string
	look look
}{
	{"ledger_and_lists", lookAtLists},
	{"leases", lookAtLeases},
	{"silent_workers", lookAtSilentWorkers},
	{"unserved_types", lookAtUnservedTypes},
	{"schema_version", lookAtSchema},
	{"statistics", lookAtStatistics},
	{"oldest_snapshot", lookAtSnapshots},
	{"server_settings", lookAtSettings},
}

// Diagnose looks for what is wrong, and at all of it whatever it finds. It
// reads every job. What the database user may not see, or cannot be found out
// in time, is a warning of its check; an error says that the database is away.
func (s *Store) Diagnose(ctx context.Context) ([]job.Check, error) {
	checks := make([]job.Check, 0, len(looks))
	for _, l := range looks {
		var check job.Check
		err := s.relaxed(ctx, func(tx pgx.Tx) (err error) {
			check, err = l.look(ctx, tx)
			return err
		})
		if err != nil {
			if check = unseen(err); check.Summary == "" {
				return nil, translate("diagnose", err)
			}
		}
		check.Name = l.name
		checks = append(checks, check)
	}
	return checks, nil
}

// relaxed runs f in a transaction that may take its time and only reads.
func (s *Store) relaxed(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.work, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		names := slices.Sorted(maps.Keys(diagnosisSettings))
		values := make([]string, len(names))
		for i, name := range names {
			values[i] = diagnosisSettings[name]
		}
		if _, err := tx.Exec(ctx, relaxSQL, names, values); err != nil {
			return err
		}
		return f(tx)
	})
}

// gather reads all rows of a statement that is planned anew: a plan that the
// connection keeps was made under sessionSettings.
func gather[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// unseen is a check that the server would not let us make; it is empty when
// the server is away.
func unseen(err error) job.Check {
	var answer *pgconn.PgError
	var unconnected *pgconn.ConnectError
	if errors.As(err, &unconnected) || !errors.As(err, &answer) || strings.HasPrefix(answer.Code, classShutdown) {
		return job.Check{}
	}
	check := job.Check{
		Severity: job.Warning, Summary: "Could not be looked at: " + answer.Message + ".",
		Remedy: "Look into the database's log.",
	}
	switch answer.Code {
	case queryCanceled:
		check.Summary = "Could not be looked at in the time there is: " + answer.Message + "."
		check.Remedy = "Ask again when the database has less to do."
	case insufficientPrivilege:
		check.Remedy = "Grant the role pg_monitor to the database user of the orchestrator, or ask as a user who may see it."
	case undefinedTable:
		check.Remedy = "Bring the schema up to date: orchestrator migrate up."
	}
	return check
}

// some is a number with its noun.
func some(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// worse is the worse of two severities.
func worse(a, b job.Severity) job.Severity {
	rank := []job.Severity{job.Fine, job.Warning, job.Problem}
	return rank[max(slices.Index(rank, a), slices.Index(rank, b))]
}
