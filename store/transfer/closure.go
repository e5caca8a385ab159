package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// reason says why a ledger is closed.
type reason string

const (
	exported  reason = "exported"
	importing reason = "importing"
)

// closure is the row of ledger_closure, a table that only a closed ledger has.
type closure struct {
	Export   string `db:"export_id"`
	Reason   reason
	ClosedAt time.Time
	SHA256   string `db:"sha256"`
	Bytes    int64
	Rows     int64
}

// ErrClosed says that nobody may work on the ledger.
var ErrClosed = errors.New("the ledger is closed")

// err tells people what to do.
func (c closure) err() error {
	if c.Reason == importing {
		return fmt.Errorf("%w: an import of the export %s began at %s and has not finished; `orchestrator import` with the same file continues it",
			ErrClosed, c.Export, c.ClosedAt.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w: it was exported at %s, and its jobs may run elsewhere; use the database that it was imported into, "+
		"or give up the move with `orchestrator export --reopen`", ErrClosed, c.ClosedAt.UTC().Format(time.RFC3339))
}

// Check returns ErrClosed if nobody may work on the ledger: because it was exported, or
// because an import has not finished.
func Check(ctx context.Context, url string) error {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	found, err := readClosure(ctx, conn)
	if err != nil || found == nil {
		return err
	}
	return found.err()
}

// Reopen lets a ledger that was exported change again. It returns false if it was open.
// The caller must know that the file is imported nowhere, or every job could run twice.
func Reopen(ctx context.Context, url string) (bool, error) {
	conn, err := connectAlone(ctx, url)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	found, err := readClosure(ctx, conn)
	switch {
	case err != nil || found == nil:
		return false, err
	case found.Reason == importing:
		return false, fmt.Errorf("reopen: %w; to give the import up, drop the database", found.err())
	}
	err = within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error { return openLedger(ctx, tx) })
	return err == nil, err
}

// readClosure returns nil if the ledger is open.
func readClosure(ctx context.Context, conn postgres.Querier) (*closure, error) {
	const operation = "read whether the ledger is closed"
	closed, err := postgres.Rows(ctx, conn, "transfer_closed", pgx.RowTo[bool])
	if err != nil || !closed[0] {
		return nil, postgres.Translate(operation, err)
	}
	found, err := postgres.Rows(ctx, conn, "transfer_closure", pgx.RowToStructByName[closure])
	switch {
	case answers(err, undefinedTable):
		return nil, nil // opened meanwhile
	case err != nil:
		return nil, postgres.Translate(operation, err)
	case len(found) != 1:
		return nil, fmt.Errorf("%s: ledger_closure has %d rows, and the program writes one", operation, len(found))
	}
	return &found[0], nil
}

// closeLedger makes the database refuse every change from the commit of the transaction
// on. It waits for those that are being made.
func closeLedger(ctx context.Context, tx pgx.Tx, c closure, message string) error {
	tables := slices.DeleteFunc(allTables(), func(table string) bool { return table == "goose_db_version" })
	if err := run(ctx, tx, "transfer_create_closure"); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	if err := run(ctx, tx, "transfer_create_refusal"); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	if err := run(ctx, tx, "transfer_close", c.Export, string(c.Reason), c.SHA256); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	triggers, err := postgres.Rows(ctx, tx, "transfer_triggers", pgx.RowTo[string], tables, c.Export, message)
	if err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	for _, trigger := range triggers {
		if _, err := tx.Exec(ctx, trigger); err != nil {
			return fmt.Errorf("close the ledger: %w", err)
		}
	}
	return nil
}

// openLedger is the reverse of closeLedger.
func openLedger(ctx context.Context, tx pgx.Tx) error {
	if err := run(ctx, tx, "transfer_drop_refusal"); err != nil {
		return err
	}
	return run(ctx, tx, "transfer_drop_closure")
}

// allTables are those of the schema, moved or not, in an order that never changes.
func allTables() []string {
	return append(slices.Clone(moved), slices.Sorted(maps.Keys(leftOut))...)
}
