package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// setup comes first in each transaction, and not in the connection, for the sake of
// poolers. It makes both databases print values alike, and exactly. Tables are read by
// their indexes, which needs no space to sort them in.
const setup = `set local timezone = 'UTC'; set local datestyle = 'ISO'; set local intervalstyle = 'postgres';
set local extra_float_digits = 1; set local bytea_output = 'hex'; set local client_encoding = 'UTF8';
set local statement_timeout = 0; set local lock_timeout = '10s'; set local idle_in_transaction_session_timeout = 0;
set local jit = off; set local max_parallel_workers_per_gather = 0`

// byIndex reads tables in the order of their primary keys.
const byIndex = "set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off"

func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.ConnectTimeout = postgres.ConnectTimeout
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing is run often enough to prepare it
	cfg.RuntimeParams["application_name"] = "holdfast transfer"
	conn, err := postgres.Connect(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", job.ErrUnavailable, err)
	}
	return conn, nil
}

// turnWithin is how long a command waits for another that works on the database. Then the
// session of one that was killed has ended, unless the server is busy with a long statement.
var turnWithin = 10 * time.Second

var errBusy = errors.New("another import or export is running on this database; wait until it is done. " +
	"If it was killed, PostgreSQL ends its session soon: run the command again")

// connectAlone connects, and keeps all other exports and imports off the database for as long
// as the connection lasts.
func connectAlone(ctx context.Context, url string) (*pgx.Conn, error) {
	conn, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	err = within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("set local lock_timeout = %d", turnWithin.Milliseconds())); err != nil {
			return err
		}
		return run(ctx, tx, "lock_transfer")
	})
	if err == nil {
		return conn, nil
	}
	if answers(err, lockNotAvailable) {
		err = errBusy
	}
	return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// SQLSTATEs that say what another command does or has done.
const (
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
)

// answers is whether the server has answered with the SQLSTATE.
func answers(err error, state string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == state
}

// within runs f in a transaction, after setup.
func within(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setup); err != nil {
			return err
		}
		return f(tx)
	})
}

// run runs a statement of store/sql that returns nothing of use.
func run(ctx context.Context, tx pgx.Tx, statement string, args ...any) error {
	unread := func(pgx.CollectableRow) (struct{}, error) { return struct{}{}, nil }
	_, err := postgres.Rows(ctx, tx, statement, unread, args...)
	return err
}

// disagreement is a row of the audit.
type disagreement struct {
	ID      job.ID `db:"job_id"`
	State   string
	List    string
	Differs string
}

// audit returns an error if the ledger and its lists disagree.
func audit(ctx context.Context, tx pgx.Tx) error {
	found, err := postgres.Rows(ctx, tx, "audit", pgx.RowToStructByName[disagreement], 1)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	first := found[0]
	return errors.Join(errUnsound, fmt.Errorf("job %s is %s in the ledger and %s among the lists; `orchestrator doctor` shows more",
		first.ID, first.State, first.List))
}

var errUnsound = errors.New("the ledger and its lists disagree, so the ledger cannot be moved")
