package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// examplesAtMost bounds the details of a check.
const examplesAtMost = 10

// relax gives a transaction what it needs to read whole tables: the planner is
// free, and what takes longer is given up.
var relax = `set local statement_timeout = '100s'; set local enable_seqscan = on; set local enable_bitmapscan = on;
set local enable_hashjoin = on; set local enable_mergejoin = on; set local enable_hashagg = on`

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

// relaxed runs f in a transaction that may take its time and only reads. What
// it asks must not be asked elsewhere: connections keep the plans they made.
func (s *Store) relaxed(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.reads, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, relax); err != nil {
			return err
		}
		return f(tx)
	})
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
