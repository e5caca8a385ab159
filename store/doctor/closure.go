package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// closureRow says why nobody may work on the ledger: it was exported, or is being imported.
type closureRow struct {
	Reason   string
	ClosedAt time.Time
	Rows     int64
	AtWork   bool
}

const ledgerClosed = "ledger_closed"

// The checks that mean something while a ledger is closed. The others look for orchestrators
// that work, and during an import the rows are not all there.
var (
	whileExported = []string{
		"ledger_and_lists", "schema_version", "cell", "statistics", "oldest_snapshot", "server_settings", "session_settings", "replication", "primary",
	}
	whileImporting = []string{"schema_version", "oldest_snapshot", "server_settings", "session_settings", "replication", "primary"}
)

// closure returns nil if the ledger is open.
func (d *Doctor) closure(ctx context.Context) (found *closureRow, err error) {
	err = d.read(ctx, func(tx pgx.Tx) error {
		closed, err := postgres.Rows(ctx, tx, "transfer_closed", pgx.RowTo[bool])
		if err != nil || !closed[0] {
			return err
		}
		rows, err := postgres.Rows(ctx, tx, "doctor_closure", pgx.RowToStructByName[closureRow])
		if len(rows) > 0 {
			found = &rows[0]
		}
		return err
	})
	return found, err
}

// skips is whether a check means nothing as long as the ledger is closed.
func (c *closureRow) skips(check string) bool {
	switch {
	case c == nil:
		return false
	case c.Reason == "importing":
		return !slices.Contains(whileImporting, check)
	}
	return !slices.Contains(whileExported, check)
}

// check is made only of a closed ledger.
func (c *closureRow) check() job.Check {
	check := job.Check{Name: ledgerClosed, Severity: job.Problem}
	at := c.ClosedAt.UTC().Format(time.RFC3339)
	switch {
	case c.Reason == "importing" && c.AtWork:
		check.Severity = job.Warning
		check.Summary = fmt.Sprintf("The ledger is closed: an import is at work since %s, and %s are in.", at, count(c.Rows, "row"))
		check.Remedy = "Wait until `orchestrator import` is done."
	case c.Reason == "importing":
		check.Summary = fmt.Sprintf("The ledger is closed: an import began at %s and was interrupted, and %s are in.", at, count(c.Rows, "row"))
		check.Remedy = "Run `orchestrator import` again with the same file: it goes on where it was. To give the import up, drop the database."
	case c.AtWork:
		check.Severity = job.Warning
		check.Summary = fmt.Sprintf("The ledger is closed: it is being exported since %s.", at)
		check.Remedy = "Wait until `orchestrator export` is done, and import the file into the new database."
	default:
		check.Summary = fmt.Sprintf("The ledger is closed: it was exported at %s, and its jobs may run elsewhere.", at)
		check.Remedy = "Use the database that it was imported into. If the file was imported nowhere, and must not be, `orchestrator export --reopen` opens the ledger again."
	}
	return check
}
