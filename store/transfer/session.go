package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

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

// within runs f in a transaction, after setup.
func within(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setup); err != nil {
			return err
		}
		return f(tx)
	})
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
