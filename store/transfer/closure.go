package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// A closed ledger has this table, with one row, and a trigger on every other table. It is
// made by the program and not by a migration, so that no schema has it unless it is closed.
const closing = `
create table ledger_closure (
    -- The name of the export that the ledger was closed for, or that is imported.
    export_id text primary key,
    reason    text not null check (reason in ('exported', 'importing')),
    closed_at timestamptz not null default now(),
    -- Of an import: of the whole file, and how many bytes and rows of it are in.
    sha256    text not null default '',
    bytes     bigint not null default 0,
    rows      bigint not null default 0
);
create function refuse_closed() returns trigger language plpgsql as $$
begin
    raise exception '%', tg_argv[0] using errcode = 'read_only_sql_transaction';
end $$`

const opening = `
drop function refuse_closed cascade;
drop table ledger_closure`

// pass is the setting by which an import passes the triggers: the name of the export.
const pass = "holdfast.transfer"

// reason says why a ledger is closed.
type reason string

const (
	exported  reason = "exported"
	importing reason = "importing"
)

// closure is the row of ledger_closure.
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
	conn, err := connect(ctx, url)
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
	err = within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, opening)
		return err
	})
	return err == nil, err
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readClosure returns nil if the ledger is open.
func readClosure(ctx context.Context, conn querier) (*closure, error) {
	var closed bool
	if err := conn.QueryRow(ctx, "select to_regclass('ledger_closure') is not null").Scan(&closed); err != nil || !closed {
		return nil, postgres.Translate("read whether the ledger is closed", err)
	}
	rows, err := conn.Query(ctx, "select export_id, reason, closed_at, sha256, bytes, rows from ledger_closure")
	if err != nil {
		return nil, postgres.Translate("read whether the ledger is closed", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[closure])
	if err != nil {
		return nil, postgres.Translate("read whether the ledger is closed", err)
	}
	return &found, nil
}

// closeLedger makes the database refuse every change from the commit of the transaction
// on. It waits for those that are being made.
func closeLedger(ctx context.Context, tx pgx.Tx, c closure, message string) error {
	if _, err := tx.Exec(ctx, closing); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	if _, err := tx.Exec(ctx, "insert into ledger_closure (export_id, reason, sha256) values ($1, $2, $3)",
		c.Export, string(c.Reason), c.SHA256); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	for _, table := range allTables() {
		if table == "goose_db_version" {
			continue
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`create trigger ledger_closed before insert or update or delete or truncate on %s
			for each statement when (current_setting(%s, true) is distinct from %s) execute function refuse_closed(%s)`,
			quoted(table), text(pass), text(c.Export), text(message)))
		if err != nil {
			return fmt.Errorf("close the ledger: %s: %w", table, err)
		}
	}
	return nil
}

// allTables are those of the schema, moved or not, in an order that never changes.
func allTables() []string {
	return append(slices.Clone(moved), slices.Sorted(maps.Keys(leftOut))...)
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// text is a literal. All that are used are the program's own.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
