package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// ReadCell returns which cell the database is. It knows databases without a schema, or
// with one of before there were cells: they are none. Use a URL that leads through no
// pooler.
func ReadCell(ctx context.Context, url string) (cell job.Cell, err error) {
	err = withConn(ctx, url, func(conn *pgx.Conn) error {
		var known bool
		if err := conn.QueryRow(ctx, sql.Text("has_cells")).Scan(&known); err != nil || !known {
			return err
		}
		cell, err = CellIn(ctx, conn)
		return err
	})
	return cell, err
}

// CellIn is ReadCell on a connection, for a database whose schema knows cells.
func CellIn(ctx context.Context, from Querier) (job.Cell, error) {
	found, err := Rows(ctx, from, "read_cell", pgx.RowTo[int16])
	if err != nil || len(found) == 0 {
		return job.Cell{}, err
	}
	return job.CellOf(uint8(found[0])), nil //nolint:gosec // a constraint bounds it
}

// TakeCell makes the database the cell, unless it is another one already: then the error
// is job.ErrWrongCell. Several processes may call it at once.
func TakeCell(ctx context.Context, url string, cell job.Cell) error {
	var has job.Cell
	err := withConn(ctx, url, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			has, err = TakeCellIn(ctx, tx, cell)
			return err
		})
	})
	if err != nil {
		return err
	}
	return job.MatchCell(has, cell)
}

// TakeCellIn makes the database the cell in a transaction, and returns which cell it is then.
func TakeCellIn(ctx context.Context, tx pgx.Tx, cell job.Cell) (job.Cell, error) {
	number, some := cell.Number()
	if !some {
		return job.Cell{}, errors.New("take a cell: it is none")
	}
	var has int16
	err := tx.QueryRow(ctx, sql.Text("take_cell"), int16(number)).Scan(&has)
	return job.CellOf(uint8(has)), err //nolint:gosec // a constraint bounds it
}

// withConn runs do on a connection of its own, and translates its error.
func withConn(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	cfg.ConnectTimeout = ConnectTimeout
	setUp(cfg, sessionSettings, "holdfast cell")
	conn, err := Connect(ctx, cfg)
	if err != nil {
		return Translate("connect", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return Translate("cell", do(conn))
}
